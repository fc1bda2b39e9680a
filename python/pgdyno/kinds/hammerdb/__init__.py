"""An installed HammerDB as the driver of the kinds `tpcc` and `tpch`: it gets a private script, and its lines become a record like that of
any driver.

:mod:`listening` has the process. For TPROC-C :mod:`script` is what it gets, :mod:`heard` what it says, :mod:`profile` its time
profile, :mod:`recorded` the outcome that these make, and :mod:`running` the run; for TPROC-H these are :mod:`query_script`,
:mod:`queries_heard`, :mod:`queries_recorded` and :mod:`queries_running`. HammerDB is a program of its own (GPL); of its text
nothing is here.
"""
