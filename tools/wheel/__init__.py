"""``make wheel``: an engine for every Linux with glibc 2.28 or later, packed into a wheel that is examined afterwards.

An engine of a plain ``cargo build`` asks for the glibc of the machine that built it, so maturin builds this one with the
linker and the headers of ``ziglang``. What the file asks for is then read from it (:mod:`tools.wheel.examine`), not assumed.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLIBC = (2, 28)
"""The oldest C library: what pyarrow, numpy and scipy ask for at the least (their wheels' tags, November 2026)."""
