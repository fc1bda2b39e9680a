"""The fewest lost or torn writes of a cut that still fail, and whose they were."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...machine import program
from .book import Name
from .examine import CutOutcome, Examiner, mount

BLOCK_BYTES = 4096
_EXTENT = re.compile(r"^\s*\d+:\s*(\d+)\.\.\s*(\d+):\s*(\d+)\.\.\s*(\d+):")
"""A line of ``filefrag -v``: first and last block in the file, first and last on the device."""


@dataclass(frozen=True)
class Shrunk:
    """The cut with as few harmed requests as still fail."""

    outcome: CutOutcome
    whole: list[int]
    """Requests that were made whole on the way."""


def shrink(examiner: Examiner, name: Name, outcome: CutOutcome, tell: Callable[[int], None] = lambda _: None) -> Shrunk:
    """Make harmed requests whole, half of them at a time, then fewer, as long as the cut still fails.

    This is delta debugging (Zeller, Hildebrandt: "Simplifying and isolating failure-inducing input", 2002) without its second
    half: what is left may not be the smallest of all, but none of it can be made whole alone.
    """
    whole: list[int] = []
    left = [int(document["request"]) for document in outcome.cut.harmed]
    size = max(1, len(left) // 2)
    while left:
        removed = False
        for begin in range(0, len(left), size):
            part = left[begin : begin + size]
            tried = examiner.try_cut(name.reading, name.seed, name.number, again=True, whole=[*whole, *part])
            if tried is not None and tried.failures:
                outcome, removed = tried, True
                whole += part
                left = [number for number in left if number not in part]
                tell(len(left))
                break
        if not removed:
            if size == 1:
                break
            size = max(1, size // 2)
        else:
            size = max(1, min(size, len(left) // 2))
    return Shrunk(outcome, whole)


def owners(files: Sequence[Path], folder: Path, requests: Sequence[dict[str, Any]]) -> dict[int, str]:
    """Whose blocks the requests wrote, by the files of a content: name, page and half of the first block that a file has."""
    owners: dict[int, str] = {}
    for volume, file in enumerate(files):
        target = folder / f"owners-{volume}"
        if mount(file, target) is not None:
            continue
        try:
            extents = _extents(target)
        finally:
            program.run("umount", target)
        for request in requests:
            if request["volume"] == volume:
                begin, end = request["offset"] // BLOCK_BYTES, (request["offset"] + request["len"]) // BLOCK_BYTES
                owner = next((_owner(extents, block) for block in range(begin, end) if _owner(extents, block)), None)
                owners[request["request"]] = owner or "the file system's own, or a file that is gone"
    return owners


def _extents(target: Path) -> list[tuple[int, int, int, str]]:
    """First and last block on the device, first block in the file, name: of every file."""
    names = [str(path) for path in sorted(target.rglob("*")) if path.is_file() and not path.is_symlink()]
    done = subprocess.run(["filefrag", "-b4096", "-v", *names], capture_output=True, text=True, check=False)
    extents, name = [], ""
    for line in done.stdout.splitlines():
        if line.startswith("File size of "):
            name = line.removeprefix("File size of ").rpartition(" is ")[0].removeprefix(f"{target}/")
        elif match := _EXTENT.match(line):
            first, _, begin, end = map(int, match.groups())
            extents.append((begin, end, first, name))
    return extents


def _owner(extents: Sequence[tuple[int, int, int, str]], block: int) -> str | None:
    for begin, end, first, name in extents:
        if begin <= block <= end:
            page, half = divmod(first + block - begin, 2)
            return f"{name}, page {page}, {'second' if half else 'first'} half"
    return None
