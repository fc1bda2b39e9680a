"""Retention of snapshots."""
