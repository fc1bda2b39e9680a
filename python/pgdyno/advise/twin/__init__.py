"""Twins: an emulated volume fitted to a disk that exists.

``target`` is the disk, ``jobs`` asks fio, ``measure`` is the order of the questions, ``fit`` turns the answers into a
volume's parameters (no clock, no disk: a function of what was measured), ``file`` writes them down.
"""
