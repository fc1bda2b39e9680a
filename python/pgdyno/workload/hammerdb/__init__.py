"""An installed HammerDB as the driver of ``kind = "tpcc"``: it gets a private script, and its lines become a record like that of any driver.

:mod:`script` is what it gets, :mod:`heard` what it says, :mod:`profile` its time profile, :mod:`recorded` the outcome that
these make, and :mod:`running` the process. HammerDB is a program of its own (GPL); of its text nothing is here.
"""
