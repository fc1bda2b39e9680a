"""The limit that binds: in each second of a run, in total, with its evidence and the cheapest remedy.

Everything here is read from what a user of a real host has too: the kernel's statistics of block devices, PostgreSQL's
counters and wait events, CPU time, and the limits of what was bought. What an emulated volume counts about itself
(``probe/volume``, ``probe/volume_latency``, ``probe/instance``) is the truth that tests compare with, and is not read.
"""
