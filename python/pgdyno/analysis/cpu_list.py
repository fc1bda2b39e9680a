"""Lists of CPUs as a run's record has them. The world's own reader is not for analysis, which touches no machine."""

from __future__ import annotations


def cpus_of(text: str) -> set[int]:
    """The CPUs of a list in the kernel's notation: ``0-2,5``."""
    cpus: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        cpus.update(range(int(first), int(last or first) + 1))
    return cpus
