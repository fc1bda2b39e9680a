"""Hosts that are apart on one machine: each a network namespace behind a veth, with a CLOCK_MONOTONIC of its own."""

from __future__ import annotations

import contextlib
import ipaddress
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from .there import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIRST = ipaddress.IPv4Address("10.213.0.0")
"""Of 65,536 private addresses. Each process of the tests has 32, and each host four of them: tests may run side by side."""
HOSTS_MAX = 8
"""That a process of the tests may have at a time."""

_NAMESPACES = Path("/run/netns")
"""Where `ip netns add` puts them."""


@dataclass(frozen=True)
class Apart:
    """One such host."""

    name: str
    """Of its namespace, and of the interface here that leads to it."""
    number: int
    ahead_s: int
    """How far its clock is ahead."""

    @property
    def here(self) -> str:
        """The address of this machine on the way."""
        return str(self._block + 1)

    @property
    def place(self) -> Place:
        """Where a worker runs there."""
        clock = ("unshare", "--time", "--monotonic", str(self.ahead_s)) if self.ahead_s else ()
        return Place(str(self._block + 2), (*self.inside, *clock), here=self.here)

    @property
    def inside(self) -> tuple[str, ...]:
        """What runs a command there. Not `ip netns exec`: its mount namespace would hold the volumes that other tests have mounted."""
        return "nsenter", f"--net={_NAMESPACES / self.name}"

    @property
    def _block(self) -> ipaddress.IPv4Address:
        return _FIRST + os.getpid() % 2048 * 4 * HOSTS_MAX + (self.number - 1) * 4

    def link(self, state: str) -> None:
        """Put the way ``up`` or ``down``."""
        _run("ip", "link", "set", self.name, state)


@contextlib.contextmanager
def apart(ahead_s: tuple[int, ...], first: int = 1) -> Iterator[list[Apart] | None]:
    """A host for each clock, by numbers from ``first`` on, which no other of this process has; None where this machine does not allow it."""
    aparts = [Apart(f"pgh{number}-{os.getpid()}"[:15], number, ahead) for number, ahead in enumerate(ahead_s, first)]
    assert all(apart.number <= HOSTS_MAX for apart in aparts)
    with contextlib.ExitStack() as stack:
        try:
            for apart in aparts:
                _make(apart, stack)
        except (OSError, subprocess.CalledProcessError):
            stack.close()
            yield None
            return
        yield aparts


def _make(apart: Apart, stack: contextlib.ExitStack) -> None:
    _run("ip", "netns", "add", apart.name)
    stack.callback(_run, "ip", "netns", "delete", apart.name)
    _run("ip", "link", "add", apart.name, "type", "veth", "peer", "name", "eth0", "netns", apart.name)
    _run("ip", "address", "add", f"{apart.here}/30", "dev", apart.name)
    apart.link("up")
    inside = (*apart.inside, "ip")
    _run(*inside, "link", "set", "lo", "up")
    _run(*inside, "address", "add", f"{apart.place.listen}/30", "dev", "eth0")
    _run(*inside, "link", "set", "eth0", "up")
    _run(*inside, "route", "add", "default", "via", apart.here)
    _run(*apart.place.prefix, "true")


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=20)
