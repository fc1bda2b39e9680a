"""The record of a run refuses what cannot be true."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pgdyno.results.record import Account, Anchor, RunPhase, RunRecord, Validity

from .conftest import make_record

counts = st.integers(0, 10**9)


@given(counts, counts, counts, counts)
def test_an_account_that_does_not_add_up_is_refused(scheduled: int, skipped: int, succeeded: int, failed: int) -> None:
    if scheduled == skipped + succeeded + failed:
        assert Account(scheduled=scheduled, skipped=skipped, succeeded=succeeded, failed=failed)
    else:
        with pytest.raises(ValidationError, match="scheduled"):
            Account(scheduled=scheduled, skipped=skipped, succeeded=succeeded, failed=failed)


@given(st.integers(0, 2**62), st.integers(0, 2**62), st.integers(0, 2**62))
def test_an_anchor_converts_there_and_back(monotonic_ns: int, unix_ns: int, instant_ns: int) -> None:
    anchor = Anchor(monotonic_ns=monotonic_ns, unix_ns=unix_ns)
    assert anchor.to_monotonic_ns(anchor.to_unix_ns(instant_ns)) == instant_ns


def test_an_anchor_is_read_between_two_readings_of_the_clock() -> None:
    before_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    anchor = Anchor.read()
    assert before_ns <= anchor.monotonic_ns <= time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    assert abs(anchor.unix_ns - time.time_ns()) < 1_000_000_000


def test_a_record_survives_json() -> None:
    record = make_record()
    assert RunRecord.model_validate_json(record.model_dump_json()) == record
    assert record.measure.seconds == 10.0


def test_a_phase_ends_after_it_begins() -> None:
    with pytest.raises(ValidationError, match="before it begins"):
        RunPhase(name="measure", begin_ns=2, end_ns=1)


def test_an_invalid_run_has_a_reason() -> None:
    with pytest.raises(ValidationError, match="reason"):
        Validity(valid=False)


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(ValidationError, match="replicat"):
        make_record(replicat=1)
