"""The Containerfile has a fixed base, the programs that pgdyno starts, and leaves no cache in its one layer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def test_the_containerfile_is_fixed_and_leaves_nothing(repository: Path) -> None:
    text = re.sub(r"\\\n\s*", "", (repository / "Containerfile").read_text(encoding="utf-8"))
    [base] = re.findall(r"^ARG BASE=(.+)$", text, re.MULTILINE)
    assert re.fullmatch(r"docker\.io/library/debian:[a-z]+-\d{8}-slim@sha256:[0-9a-f]{64}", base)
    [steps] = re.findall(r"^RUN (.+)$", text, re.MULTILINE)
    for package in ("e2fsprogs", "fio", "mount", "util-linux", "xfsprogs"):
        assert f" {package} " in steps
    for kept_out in ("--no-install-recommends", "--no-cache-dir", "rm -rf /var/lib/apt/lists/*"):
        assert kept_out in steps
    assert "\nUSER pgdyno\n" in text
    assert "org.opencontainers.image.licenses" in text


def test_the_guide_runs_it_with_the_flags_that_doctor_names(repository: Path) -> None:
    guide = (repository / "docs" / "guide" / "install.md").read_text(encoding="utf-8")
    [flags] = re.findall(r"^\$ podman run (.+) pgdyno compare", guide, re.MULTILINE)
    for flag in ("--privileged", "--cgroupns=host", "--user root", "--shm-size 8g"):
        assert flag in flags
