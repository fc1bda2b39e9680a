"""The clock-free crates have the bans that clippy enforces there, and the same ones.

A ``clippy.toml`` inside a crate replaces the one of the workspace instead of adding to it. So each clock-free crate has
the whole text, and this rule compares them.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from tools.lint import Finding

CRATES = ("volume", "catalog", "crash", "workload", "dataset")

BANNED_METHODS = {
    "std::time::Instant::now",
    "std::time::SystemTime::now",
    "std::thread::sleep",
    "std::thread::spawn",
    "std::fs::read",
    "std::fs::read_to_string",
    "std::fs::write",
    "std::env::var",
    "std::thread::Builder::spawn",
    "std::thread::scope",
    "std::fs::OpenOptions::open",
    "std::process::Command::new",
    "std::process::id",
    "f64::exp",
    "f64::ln",
    "f64::ln_1p",
    "f64::powf",
    "f64::sin",
    "f64::cos",
}
BANNED_TYPES = {
    "std::collections::HashMap",
    "std::collections::HashSet",
    "std::fs::File",
    "std::net::TcpStream",
    "std::net::UdpSocket",
}
BANNED_MACROS = {"std::println", "std::eprintln", "std::dbg"}
BANS = {
    "disallowed-methods": BANNED_METHODS,
    "disallowed-types": BANNED_TYPES,
    "disallowed-macros": BANNED_MACROS,
}


def check(root: Path) -> list[Finding]:
    """Bans that are missing, reasons that are missing, and files that differ."""
    findings = []
    common = tomllib.loads((root / "clippy.toml").read_text())
    texts = {}
    for crate in CRATES:
        place = f"crates/{crate}/clippy.toml"
        path = root / place
        if not path.is_file():
            findings.append(Finding(place, 0, f"`{crate}` is clock-free and needs its bans: copy another such crate's"))
            continue
        texts[place] = path.read_text()
        settings = tomllib.loads(texts[place])
        for key, value in common.items():
            if settings.get(key) != value:
                findings.append(Finding(place, 0, f"set `{key} = {value}` as the workspace's clippy.toml does"))
        for key, wanted in BANS.items():
            entries = settings.get(key, [])
            missing = wanted - {entry["path"] for entry in entries}
            findings += [Finding(place, 0, f"ban {name} in `{key}` again") for name in sorted(missing)]
            findings += [
                Finding(place, 0, f"say the reason of the ban of {entry['path']}")
                for entry in entries
                if not entry.get("reason")
            ]
    if len(set(texts.values())) > 1:
        findings.append(Finding(" and ".join(texts), 0, "these files must be equal: copy the right one to the others"))
    return findings
