"""Volumes that differ from gp3 in kind: credits, large and small units, reads and writes apart."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pgdyno.machine import volume

from .needs import needs_fuse

if TYPE_CHECKING:
    from pathlib import Path


@needs_fuse
@pytest.mark.parametrize(
    ("spec", "request_kib"),
    [
        ("gp2:size=1GiB,credits=40000", 256),
        ("io1:size=1TiB,iops=40000", 256),
        ("st1:size=1TiB", 1024),
        ("instance-store:size=4GiB", 256),
        ("azure-premium-v1:size=8GiB", 256),
    ],
)
def test_a_volume_of_any_kind_keeps_what_is_written(state: Path, spec: str, request_kib: int) -> None:
    content, mount = os.urandom(3 << 20), state.parent / "mnt"
    with volume.attached(spec, mount=mount) as attached:
        assert attached.facts["proofs"]["max_sectors_kb"] == str(request_kib)
        (mount / "file").write_bytes(content)
        os.sync()
        assert (mount / "file").read_bytes() == content
        counters = attached.stats()["counters"]
        assert counters["write_bytes"] >= len(content)
        assert counters["io_units"] > 0
