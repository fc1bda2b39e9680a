"""Which tests of Python run alone, and which beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MEASURING = (
    "tests/binding/test_real.py", "tests/binding/test_real_credit.py", "tests/bulk_load/test_run.py", "tests/dilation",
    "tests/fidelity", "tests/probe", "tests/replay", "tests/test_leaks.py", "tests/twin",
)  # fmt: skip
"""They judge times, or need a machine that others leave alone."""


@dataclass(frozen=True)
class Together:
    """Tests that one process of pytest runs: what they have in common, such as a server, is made once."""

    name: str
    paths: tuple[str, ...]
    sets_limits: bool = False
    """Whether they set what is the machine's, the kernel's dirty limits, or look for what killed runs left of them."""


_LIMITS = (
    ("documents", "tests/docs/test_execution.py"),
    ("compare", "tests/compare"),
    ("experiment", "tests/experiment"),
    ("host", "tests/host"),
    ("metrics", "tests/metrics"),
    ("layout", "tests/postgres/test_layout.py"),
    ("refusals", "tests/cli/test_refusals.py"),
    ("data sets", "tests/fill/test_dataset.py"),
)
_LONGEST = ("loader", "report", "tpcc", "cli", "drive", "load", "lint", "fill", "size", "postgres", "workload")
"""Folders that begin first, so that the last to begin is a short one."""
BENCHES = ("controls", "diagnose_cost", "relay", "speed", "torn")
"""Folders with nothing but measurements, which `make bench` makes."""


def beside() -> list[Together]:
    """All that is in no other list, in the order in which it begins: a process for each folder."""
    elsewhere = {*MEASURING, *(path for _, path in _LIMITS), *(f"tests/{name}" for name in BENCHES)}
    found = [Together(name, (path,), sets_limits=True) for name, path in _LIMITS]
    folders: dict[str, list[str]] = {name: [] for name in _LONGEST}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT)
        if not elsewhere & {file.as_posix(), *(parent.as_posix() for parent in file.parents)}:
            folders.setdefault(file.parts[1], []).append(file.as_posix())
    return found + [Together(name, tuple(files)) for name, files in folders.items()]
