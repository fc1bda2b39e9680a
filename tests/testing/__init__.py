"""Tests of what runs the tests."""
