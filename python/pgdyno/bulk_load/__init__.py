"""A load as the workload of a run: files that are there for all runs, a process that loads them, and what it came to.

The process is :mod:`pgdyno.loader.several`, so that its CPU, and that of the engines it starts, is counted apart from the probes.
A row that was loaded is a transaction of the run's account, which makes rows per second the figure that arms are compared by.
"""

from pgdyno.bulk_load.files import Files, estimate_s, files_of
from pgdyno.bulk_load.loading import Loading

__all__ = ["Files", "Loading", "estimate_s", "files_of"]
