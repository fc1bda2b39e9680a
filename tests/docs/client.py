"""A client that the documents suppose: prints a free port of this machine, and asks something there once somebody listens."""

from __future__ import annotations

import os

import psycopg

from pgdyno.machine import preflight
from pgdyno.machine.waiting import wait_until

PATIENCE_S = 60.0
WATCHER = "dbname=app user=monitor"
"""The database and a role of :mod:`tests.docs.server`, which are trusted on its socket."""


def main() -> None:
    """The port now, the statement later, in a process that holds no pipe."""
    port = preflight.free_port()
    print(f"127.0.0.1:{port}", flush=True)
    if os.fork():
        return
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in range(3):
        os.dup2(null, descriptor)
    wait_until(lambda: _asked(port), PATIENCE_S)


def _asked(port: int) -> bool:
    try:
        with psycopg.connect(f"host=127.0.0.1 port={port} {WATCHER}") as client:
            client.execute("SELECT 1")
    except psycopg.OperationalError:
        return False
    return True


if __name__ == "__main__":
    main()
