"""Which crate may use which: the model knows nothing about clocks, files or hosts.

``volume`` is what everything else must be able to trust, so it may use serde and nothing more.
``workload`` needs logarithms and powers for its distributions: libm's are software, the same on every machine. It and
``dataset`` read with serde what they are asked for. ``tpchgen`` makes TPC-H's rows from fixed seeds; it depends on nothing,
and touches neither clock nor file.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tools.lint import Finding, relative

PREFIX = "pgdyno-"

ALLOWED: dict[str, set[str]] = {
    "volume": set(),
    "catalog": {"volume"},
    "crash": set(),
    "capture": {"host", "signals"},
    "emulate": {"volume", "catalog", "crash", "host", "clock", "signals"},
    "host": set(),
    "clock": set(),
    "signals": set(),
    "probe": {"host", "clock", "signals"},
    "workload": set(),
    "connection": {"host"},
    "measure": {"workload"},
    "drive": {"connection", "workload", "measure", "host", "clock", "signals"},
    "load": {"connection", "host", "signals"},
    "unsynced": set(),
    "record": {"capture", "relay", "host", "measure", "clock", "signals"},
    "shifted": set(),
    "relay": {"host", "measure", "clock", "signals"},
    "replay": {"capture", "connection", "workload", "measure", "host", "clock", "signals"},
    "dataset": {"workload"},
    "fill": {"dataset", "measure", "connection", "host", "clock", "signals"},
    "generate": {"dataset", "measure", "host", "signals"},
    "engine": {
        "volume",
        "capture",
        "catalog",
        "crash",
        "host",
        "emulate",
        "probe",
        "connection",
        "drive",
        "fill",
        "generate",
        "load",
        "record",
        "relay",
        "replay",
        "shifted",
        "signals",
    },
}
"""For each crate the crates of this project that it may use."""

ALLOWED_OUTSIDE: dict[str, set[str]] = {
    "volume": {"serde"},
    "crash": {"serde", "sha2"},
    "workload": {"libm", "serde"},
    "dataset": {"serde", "tpchgen"},
    "unsynced": {"libc"},
    "shifted": set(),
}
"""Crates from elsewhere, for those crates that are limited."""


def check(root: Path) -> list[Finding]:
    """Dependencies that are not allowed, and crates that this rule does not know."""
    findings = []
    for manifest in sorted((root / "crates").glob("*/Cargo.toml")):
        crate = manifest.parent.name
        place = f"crates/{crate}/Cargo.toml"
        if crate not in ALLOWED:
            findings.append(
                Finding(place, 0, "tools/lint/crates.py does not say what this crate may use: add it there")
            )
            continue
        document = tomllib.loads(manifest.read_text())
        findings += never_run(root, manifest.parent, document)
        for name in sorted(dependencies(document)):
            inner = name.removeprefix(PREFIX)
            if name.startswith(PREFIX) and inner not in ALLOWED[crate]:
                findings.append(
                    Finding(place, 0, f"`{crate}` may not use `{inner}`: move the shared part to a crate below both")
                )
            elif not name.startswith(PREFIX) and name not in ALLOWED_OUTSIDE.get(crate, {name}):
                findings.append(
                    Finding(place, 0, f"`{crate}` may not use `{name}`: hand in its result as an argument instead")
                )
    return findings


def never_run(root: Path, crate: Path, manifest: dict[str, Any]) -> list[Finding]:
    """Tests in the sources of a library or program that says ``test = false``."""
    targets = [manifest.get("lib", {}), *manifest.get("bin", [])]
    if all(target.get("test", True) for target in targets):
        return []
    why = "this test is never run: remove `test = false` from the crate's Cargo.toml"
    sources = sorted((crate / "src").rglob("*.rs"))
    return [Finding(relative(root, path), 0, why) for path in sources if "#[test]" in path.read_text(encoding="utf-8")]


def dependencies(manifest: dict[str, Any]) -> set[str]:
    """What a crate is built with; dependencies of its tests alone are free."""
    tables = [manifest, *manifest.get("target", {}).values()]
    return {name for table in tables for kind in ("dependencies", "build-dependencies") for name in table.get(kind, {})}
