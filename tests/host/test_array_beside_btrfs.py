"""Where btrfs puts requests: `crates/volume/tests/array_layout.rs` holds the model's arrays against this record."""

from __future__ import annotations

import json

import pytest

from tools import btrfs_layout


@pytest.mark.needs_btrfs
def test_btrfs_stripes_as_it_did_when_the_record_was_made() -> None:
    record = json.loads(btrfs_layout.RECORD.read_text(encoding="ascii"))
    assert (record["columns"], record["chunk_kib"]) == (btrfs_layout.COLUMNS, btrfs_layout.CHUNK_KIB)
    for document, recorded in zip(btrfs_layout.observe(), record["requests"], strict=True):
        assert document == recorded
