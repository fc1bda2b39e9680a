"""Which tests of Python run alone, and which beside each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

MEASURING = ("tests/binding/test_real.py", "tests/binding/test_real_credit.py", "tests/bulk_load/test_verdict.py")
"""They judge times, and skip what a busy machine has spoilt: the machine is theirs."""


@dataclass(frozen=True)
class Together:
    """Tests that one process of pytest runs: what they have in common, such as a server, is made once."""

    name: str
    paths: tuple[str, ...]


DOCUMENTS = "tests/docs/test_execution.py"
"""The longest of all, and so a part of its own."""
BESIDE_RUST = ("tpch", "reproduce", "connection")
"""Folders that attach no volumes and set no limits: they compute while Rust's compiler and its tests leave a core idle."""
_LONGEST = (
    "host", "experiment", "limits", "faults", "tpcc", "project", "judged", "volumes", "workload", "capture", "hosts", "diagnose", "cli", "postgres",
    "fidelity", "drive", "load", "database", "loader", "report", "analysis",
)  # fmt: skip
"""Parts that begin first of the others, the longest before the shorter ones, so that the last to begin is a short one."""
_SHORT: dict[str, tuple[str, ...]] = {
    "limits": ("bulk_load", "compare", "fill"),
    "faults": ("crash", "fault", "probe", "replay", "snapshot"),
    "judged": ("aa", "attribution", "binding", "calibration", "captured", "equivalence", "size", "twin"),
    "kept": ("generate", "metrics", "published", "results", "retention"),
    "project": ("docs", "install", "lint", "machine", "rude", "site", "test_leaks", "testing", "tpc", "wheel"),
}
"""Folders that share a process: one of pytest takes a second of CPU before its first test. Those of "limits" would wait for each other."""
LIMITS = "PGDYNO_TEST_LIMITS"
"""Environment variable: set where nothing but tests may change the kernel's dirty limits (:mod:`tests.support.machine`)."""
BENCHES = ("controls", "diagnose_cost", "dilation", "relay", "speed", "torn")
"""Folders with nothing but measurements, which `make bench` makes."""


def beside() -> list[Together]:
    """All that is in no other list, in the order in which it begins: mostly a process for each folder."""
    elsewhere = {*MEASURING, DOCUMENTS, *(f"tests/{name}" for name in BENCHES)}
    parts: dict[str, list[str]] = {name: [] for name in (*BESIDE_RUST, *_LONGEST)}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        file = path.relative_to(ROOT)
        if not elsewhere & {file.as_posix(), *(parent.as_posix() for parent in file.parents)}:
            parts.setdefault(_part(file), []).append(file.as_posix())
    return [Together("documents", (DOCUMENTS,)), *(Together(name, tuple(files)) for name, files in parts.items())]


def _part(file: Path) -> str:
    """The name of the part in which a file of tests runs."""
    folder = file.parts[1].removesuffix(".py")
    if folder == "host" and file.name.startswith("test_volume"):
        return "volumes"
    return next((name for name, folders in _SHORT.items() if folder in folders), folder)
