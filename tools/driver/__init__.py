"""What the driver costs, beside pgbench and sysbench: a record, its bars, and the reference's page on it."""
