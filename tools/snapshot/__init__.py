"""Measures snapshots under load, and writes their page (``make bench ONLY=snapshot``)."""
