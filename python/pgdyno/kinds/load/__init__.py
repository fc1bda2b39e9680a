"""Kind `load`: a load of files as the workload of a run, by a process of its own.

The process is :mod:`pgdyno.loader.several`, so that its CPU, and that of the engines it starts, is counted apart from the probes.
The account of such a run counts rows. Arms are compared by the seconds that the load took.
"""
