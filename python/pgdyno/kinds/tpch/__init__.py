"""What is derived from TPC-H: files, tables, queries in streams."""
