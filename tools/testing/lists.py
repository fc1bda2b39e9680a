"""Which tests of Python run alone, and which beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MEASURING = (
    "tests/binding/test_real.py", "tests/binding/test_real_credit.py", "tests/bulk_load/test_run.py",
    "tests/compare/test_killed.py", "tests/dilation", "tests/experiment/test_sweep_command.py", "tests/fidelity",
    "tests/host/test_instance.py", "tests/probe", "tests/replay", "tests/test_leaks.py", "tests/twin",
)  # fmt: skip
"""They judge times, or need a machine that others leave alone: a killed run leaves its limits, and any clean-up finds them."""


@dataclass(frozen=True)
class Together:
    """Tests that one process of pytest runs: what they have in common, such as a server, is made once."""

    name: str
    paths: tuple[str, ...]


DOCUMENTS = "tests/docs/test_execution.py"
"""The longest of all, and so a part of its own."""
_LONGEST = (
    "host", "loader", "experiment", "tpcc", "workload", "report", "cli", "postgres", "diagnose", "drive", "analysis", "load",
)  # fmt: skip
"""Folders that begin first, so that the last to begin is a short one."""
LIMITS = "PGDYNO_TEST_LIMITS"
"""Environment variable: the file whose lock lets one test at a time set the kernel's dirty limits (:mod:`tests.support.machine`)."""
BENCHES = ("controls", "diagnose_cost", "relay", "speed", "torn")
"""Folders with nothing but measurements, which `make bench` makes."""


def beside() -> list[Together]:
    """All that is in no other list, in the order in which it begins: a process for each folder."""
    elsewhere = {*MEASURING, DOCUMENTS, *(f"tests/{name}" for name in BENCHES)}
    folders: dict[str, list[str]] = {name: [] for name in _LONGEST}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT)
        if not elsewhere & {file.as_posix(), *(parent.as_posix() for parent in file.parents)}:
            folders.setdefault(file.parts[1], []).append(file.as_posix())
    return [Together("documents", (DOCUMENTS,)), *(Together(name, tuple(files)) for name, files in folders.items())]
