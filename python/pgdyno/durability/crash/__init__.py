"""``pgdyno crashtest``: a server is recorded on a volume, the power is cut in the recording, and what is left is examined.

:mod:`recording` makes a recording: the write log of the volumes, and the ledger of what the server acknowledged. :mod:`book`
gives the content of the volumes after a cut, :mod:`examine` mounts it, lets PostgreSQL recover, and checks everything that was promised;
:mod:`test` makes many cuts, :mod:`verdict` says what they show.
"""
