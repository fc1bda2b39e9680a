"""TPC-C: its tables, audit and proofs."""
