"""Parts that all workloads share: drivers, clients, histograms, tables and data sets, and the outcome of a run."""
