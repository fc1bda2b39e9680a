"""Kinds of workload, one module or folder each: keys, tables, runner, proofs and record."""
