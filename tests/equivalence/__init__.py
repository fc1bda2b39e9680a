"""The driver beside the programs that define its workloads."""
