"""Kinds of workload. Each is one file: its keys, its tables, its runner, its proofs, its record."""
