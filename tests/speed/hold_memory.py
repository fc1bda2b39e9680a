"""A program that takes memory until a given amount is left, and keeps it so until its standard input ends.

It is the first that the kernel ends when memory is short.
"""

from __future__ import annotations

import mmap
import select
import sys
from pathlib import Path

STEP_BYTES = 32 << 20
LOOK_EVERY_S = 0.1


def available_bytes() -> int:
    """What the kernel could give without swapping."""
    lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))


def main() -> None:
    """Hold; ``argv[1]`` is how many bytes to leave. Says so once with a line."""
    leave_bytes = int(sys.argv[1])
    Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")
    held: list[mmap.mmap] = []
    output = False
    while not select.select([sys.stdin], [], [], LOOK_EVERY_S if output else 0)[0]:
        left = available_bytes()
        if left > leave_bytes + STEP_BYTES:
            block = mmap.mmap(-1, STEP_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | mmap.MAP_POPULATE)
            # Populated pages of a private mapping may be the zero page; written ones are memory.
            block[::4096] = bytes(range(1, 2)) * (STEP_BYTES // 4096)
            held.append(block)
        elif not output:
            print("held", flush=True)
            output = True
        elif left < leave_bytes // 2 and held:
            held.pop().close()


if __name__ == "__main__":
    main()
