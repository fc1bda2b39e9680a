"""Probes that sample while a workload runs: the host by the engine, the server by SQL."""
