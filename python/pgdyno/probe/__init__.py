"""What is watched while a workload runs: the host by the engine's probe, the server by SQL."""
