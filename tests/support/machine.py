"""What a machine has once: tests that change it take turns, whichever run of the tests they belong to."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pgdyno.machine.dirty_limits import record
from tools.testing.lists import LIMITS

TURNS = Path("/run/pgdyno-tests.turns")
"""The file whose lock is the turn; it is of the machine, so that two runs of the tests at once take turns too."""


@contextlib.contextmanager
def limits(turns: Path = TURNS) -> Iterator[None]:
    """The kernel's dirty limits are this test's; it waits until they are. A user who may not lock may not set limits either."""
    try:
        file = turns.open("a", encoding="utf-8")
    except PermissionError:
        yield
        return
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        if _stat(turns, "st_size") % 2:
            _count(file.fileno())  # the turn of a test that was killed
        _count(file.fileno())
        try:
            yield
        finally:
            _count(file.fileno())


_LEAVE_VOLUMES = """
while read -r device point rest; do
    case "$device" in
        /dev/loop* | pgdyno) [ "$point" = "$0" ] || umount --lazy "$point" ;;
    esac
done < /proc/self/mounts
exec "$@"
"""


def own_mounts(*options: str, keep: Path | None = None) -> tuple[str, ...]:
    """The words before a command that has mounts of its own, with these options of unshare(1).

    It gives up its copies of every volume's mount but ``keep``. Tests run beside each other, and a volume whose mount another
    process has cannot be detached.
    """
    return ("unshare", "--mount", *options, "sh", "-euc", _LEAVE_VOLUMES, str(keep or ""))


def _count(file: int) -> None:
    """Write one byte when a turn begins and one when it ends: the size is odd while one lasts."""
    os.write(file, b".")


@dataclass(frozen=True)
class Limits:
    """What tells whether a test has set the limits without waiting for its turn."""

    turns: int
    """How often a turn has begun or ended."""
    changed_ns: int
    """When the limits were last set or put back."""

    @classmethod
    def look(cls, turns: Path = TURNS) -> Limits | None:
        """As they are now; ``None`` outside `make test`, where any command of the machine may set them."""
        if not os.environ.get(LIMITS):
            return None
        return cls(_stat(turns, "st_size"), _stat(record().path, "st_mtime_ns"))

    def set_out_of_turn(self, before: Limits) -> bool:
        """Whether they were set since ``before`` although it was no test's turn."""
        return self.changed_ns != before.changed_ns and self.turns == before.turns and self.turns % 2 == 0


def _stat(path: Path, name: str) -> int:
    try:
        return int(getattr(path.stat(), name))
    except FileNotFoundError:
        return 0
