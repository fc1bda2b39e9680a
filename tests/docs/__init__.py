"""Tests that the documents say what is so."""
