"""Bulk load: rows and chunks of files."""
