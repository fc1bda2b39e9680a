"""A load as the workload of a run: files that are there for all runs, a process that loads them, and what it came to.

The process is :mod:`pgdyno.loader.several`, so that its CPU, and that of the engines it starts, is counted apart from the probes.
The account of such a run counts rows. Arms are compared by the seconds that the load took.
"""
