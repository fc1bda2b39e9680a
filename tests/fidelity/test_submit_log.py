"""A submit log as Python reads it: each request with its own grant, though ids are used again."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from tools.fidelity import submit_log

if TYPE_CHECKING:
    from pathlib import Path

SUBMIT, CREDIT, GRANT, OVERFLOW = 1, 3, 4, 5


def record(kind: int, instant_ns: int = 0, request: int = 0, offset: int = 0) -> bytes:
    """As crates/volume/src/log.rs packs it."""
    return struct.pack("<BBHI5Q", kind, 0, 0, 4096, instant_ns, request, offset, 0, 0)


def log(path: Path, *records: bytes, magic: bytes = submit_log.MAGIC) -> Path:
    header = b'{"model_hash":"0","spec":{},"seed":0}'
    path.write_bytes(magic + struct.pack("<Q", len(header)) + header + b"".join(records))
    return path


def test_requests_come_in_the_order_of_their_submits_with_their_own_grants(tmp_path: Path) -> None:
    """Id 7 is used twice; the later request is granted before the earlier one; the last one never is."""
    path = log(
        tmp_path / "log",
        record(CREDIT, 5),
        *(record(SUBMIT, 10, 7), record(SUBMIT, 20, 3), record(GRANT, 50, 3), record(GRANT, 90, 7)),
        *(record(SUBMIT, 100, 7), record(GRANT, 160, 7), record(SUBMIT, 170, 3)),
        record(OVERFLOW),
    )
    result = submit_log.read(path)
    assert result.submitted_ns.tolist() == [10, 20, 100]
    assert result.latency_ns.tolist() == [80, 30, 60]


def test_a_record_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    whole = log(tmp_path / "log", record(SUBMIT, 10, 1), record(GRANT, 30, 1), record(SUBMIT, 40, 1))
    whole.write_bytes(whole.read_bytes()[:-5])
    assert submit_log.read(whole).latency_ns.tolist() == [20]


def test_another_version_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a submit log of this version"):
        submit_log.read(log(tmp_path / "log", magic=b"pgdyno\x00\x63"))
