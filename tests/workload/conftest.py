"""A server with pgbench's tables, and a place where the clock is another one."""

from __future__ import annotations

import subprocess

import pytest

from ..support.servers import cluster, older_server

__all__ = ["cluster", "older_server"]

DAY_S = 86_400


@pytest.fixture
def elsewhere() -> tuple[str, ...]:
    """A command that runs another one where CLOCK_MONOTONIC is a day ahead."""
    command = ("unshare", "--time", "--monotonic", str(DAY_S))
    try:
        tried = subprocess.run([*command, "true"], capture_output=True, check=False, timeout=20)
    except FileNotFoundError:
        pytest.skip("there is no unshare")
    if tried.returncode != 0:
        pytest.skip(f"time namespaces are not allowed: {tried.stderr.decode().strip()}")
    return command
