"""``hold_row.py DSN TABLE KEY``: has inserted a row and commits nothing until it is ended; the same key waits for it."""

from __future__ import annotations

import signal
import sys

import psycopg

with psycopg.connect(sys.argv[1]) as connection:
    connection.execute(f"INSERT INTO {sys.argv[2]} VALUES ({sys.argv[3]})")
    signal.pause()
