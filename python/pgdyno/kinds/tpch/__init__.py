"""Kind `tpch`: streams of queries and refresh functions derived from TPC-H."""
