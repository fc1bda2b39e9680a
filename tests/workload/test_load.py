"""What ``pgbench -i`` says while it loads."""

from __future__ import annotations

import pytest

from pgdyno.workload.fill import progress_of, step_seconds


def test_rows_become_a_share() -> None:
    line = "500000 of 2000000 tuples (25%) of pgbench_accounts done (elapsed 0.40 s, remaining 1.19 s)"
    shown = progress_of(line)
    assert shown is not None
    assert 0.1 < shown[0] < 0.2
    assert shown[1] == "500,000 of 2,000,000 accounts"


def test_shares_only_grow() -> None:
    lines = [
        "100000 of 100000 tuples (100%) of pgbench_accounts done (elapsed 0.1 s, remaining 0.0 s)",
        "vacuuming...",
        "creating primary keys...",
    ]
    shares = [shown[0] for line in lines if (shown := progress_of(line))]
    assert len(shares) == 3
    assert shares == sorted(shares)


@pytest.mark.parametrize("line", ["dropping old tables...", "200 of 200 tuples (100%) of pgbench_tellers done", ""])
def test_other_lines_are_no_progress(line: str) -> None:
    assert progress_of(line) is None


def test_seconds_of_each_step() -> None:
    line = (
        "done in 2.54 s (drop tables 0.00 s, create tables 0.00 s, client-side generate 1.60 s, primary keys 0.79 s)."
    )
    assert step_seconds(line) == {
        "drop tables": 0.0,
        "create tables": 0.0,
        "client-side generate": 1.6,
        "primary keys": 0.79,
    }
