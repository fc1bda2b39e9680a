"""Tests of the rules that `make lint` checks."""
