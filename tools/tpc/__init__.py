"""What the workloads derived from TPC-C and TPC-H cost: loads, drivers, and TPC-C's five transactions beside pgbench."""
