"""The bench of the workloads derived from TPC-C and TPC-H."""
