"""Slowed time against real time."""
