"""HammerDB, installed by the user, as the driver of the kinds `tpcc` and `tpch`: it gets a private script, and its lines become a record
like that of any driver.

:mod:`script` has its input, :mod:`output` its lines, :mod:`record` the outcome with its time profile, and :mod:`runner` the process. HammerDB
is a separate program (GPL); none of its text is here.
"""
