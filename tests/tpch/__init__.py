"""Queries derived from TPC-H."""
