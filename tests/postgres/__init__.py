"""Tests of PostgreSQL's life cycle."""
