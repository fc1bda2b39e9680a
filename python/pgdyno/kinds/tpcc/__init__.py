"""Kind `tpcc`: transactions derived from TPC-C, and the audit that proves a run."""
