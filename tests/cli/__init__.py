"""Tests of the command line and of the way to the engine."""
