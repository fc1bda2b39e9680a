"""pgbench's transaction log, in each of its forms."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import PgdynoError
from pgdyno.results.record import Anchor
from pgdyno.results.tables import SubjectClock
from pgdyno.workload import pgbench
from pgdyno.workload.pgbench import TransactionLog

if TYPE_CHECKING:
    from pathlib import Path

SECOND = 1_000_000_000
ANCHOR = Anchor(monotonic_ns=100 * SECOND, unix_ns=1_795_265_771 * SECOND)


def written(directory: Path, *texts: str) -> list[Path]:
    paths = [directory / f"log.{number}" for number in range(len(texts))]
    for path, text in zip(paths, texts, strict=True):
        path.write_text(text)
    return paths


def test_a_closed_loop_with_two_threads(tmp_path: Path) -> None:
    paths = written(
        tmp_path,
        "0 1 1477 1 1795265771 741261\n0 2 failed 0 1795265772 5\n",
        "3 1 965 1 1795265771 741188\n3 2 serialization 0 1795265773 0\n",
        "",
    )
    log = pgbench.read(paths, ANCHOR, open_loop=False, retries=False)
    assert log.end_ns.tolist() == [100_741_261_000, 101_000_005_000, 100_741_188_000, 102_000_000_000]
    assert log.latency_us.tolist() == [1477, 0, 965, 0]
    assert log.script.tolist() == [1, 0, 1, 0]
    assert log.account().model_dump() == {"scheduled": 4, "skipped": 0, "succeeded": 2, "failed": 2, "rolled_back": 0}
    assert log.account(script=1).scheduled == 2
    assert log.retries == 0


def test_the_log_of_a_dilated_run_is_in_the_subjects_time(tmp_path: Path) -> None:
    paths = written(tmp_path, "0 1 1477 0 1795265771 800000 80\n0 2 skipped 0 1795265775 0 0\n")
    log = pgbench.read(paths, ANCHOR, open_loop=True, retries=False).on(SubjectClock(ANCHOR.monotonic_ns, 8))
    assert log.end_ns.tolist() == [100_100_000_000, 100_500_000_000]
    assert log.latency_us.tolist() == [185, 0]
    assert log.lag_us.tolist() == [10, 0]
    assert log.account().skipped == 1


def test_an_open_loop_with_skipped_and_retried_transactions(tmp_path: Path) -> None:
    text = (
        "0 1 3595 0 1795265775 775431 83 0\n"
        "3 2 skipped 0 1795265775 774793 0 0\n"
        "1 1 3700 0 1795265775 775781 12 2\n"
        "1 2 deadlock 0 1795265775 775999 50 1\n"
    )
    log = pgbench.read(written(tmp_path, text), ANCHOR, open_loop=True, retries=True)
    assert log.account().model_dump() == {"scheduled": 4, "skipped": 1, "succeeded": 2, "failed": 1, "rolled_back": 0}
    assert log.lag_us.tolist() == [83, 0, 12, 50]
    assert log.retries == 3
    edges = pgbench.edges_ns(104 * SECOND, 104 * SECOND, 105 * SECOND)
    response = pgbench.latency_table(log, edges, ["a"])
    service = pgbench.latency_table(log, edges, ["a"], service=True)
    assert response["latency_us"].to_pylist() == [3594, 3700]  # 3595 lies in the bucket of 3594
    assert service["latency_us"].to_pylist() == [3512, 3688]


def test_no_transaction_at_all(tmp_path: Path) -> None:
    log = pgbench.read(written(tmp_path, "", ""), ANCHOR, open_loop=True, retries=True)
    edges = pgbench.edges_ns(0, SECOND, 2 * SECOND)
    assert log.account().scheduled == 0
    assert pgbench.latency_table(log, edges, ["a"]).num_rows == 0
    assert pgbench.throughput_table(log, edges, ["a", "b"])["transactions"].to_pylist() == [0, 0, 0, 0]


@pytest.mark.parametrize("text", ["0 1 1477 1 1795265771\n", "0 1 1477 1 1795265771 741261 83\n", "rubbish\n"])
def test_a_log_in_another_format_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(PgdynoError, match="not understood"):
        pgbench.read(written(tmp_path, text), ANCHOR, open_loop=False, retries=False)


def test_the_measure_phase_is_made_of_whole_bins() -> None:
    edges = pgbench.edges_ns(int(8.2 * SECOND), 10 * SECOND, int(12.5 * SECOND))
    assert (edges / SECOND).tolist() == [9.0, 10.0, 11.0, 12.0, 12.5]
    assert (pgbench.edges_ns(int(8.02 * SECOND), 10 * SECOND, 11 * SECOND) / SECOND).tolist() == [8, 9, 10, 11]
    assert pgbench.edges_ns(5, 5, 5 + SECOND).tolist() == [5, 5 + SECOND]


def logs() -> st.SearchStrategy[TransactionLog]:
    row = st.tuples(st.integers(0, 5 * SECOND), st.integers(0, 1), st.integers(0, 10**6), st.sampled_from("ksf"))

    def build(rows: list[tuple[int, int, int, str]]) -> TransactionLog:
        end_ns, script, latency = (np.array([row[i] for row in rows], dtype=np.int64) for i in range(3))
        kind = np.array([row[3] for row in rows], dtype=str)
        return TransactionLog(end_ns, script, latency, np.zeros_like(latency), kind == "s", kind == "k", 0)

    return st.lists(row, max_size=50).map(build)


@given(logs(), st.lists(st.integers(-1, 6 * SECOND), max_size=4))
def test_every_transaction_is_counted_in_exactly_one_phase(log: TransactionLog, cuts: list[int]) -> None:
    limits = [None, *sorted(cuts), None]
    parts = [log.account(begin, end) for begin, end in itertools.pairwise(limits)]
    whole = log.account()
    for name in ("scheduled", "skipped", "succeeded", "failed"):
        assert sum(getattr(part, name) for part in parts) == getattr(whole, name)


@given(logs())
def test_the_tables_agree_with_the_account(log: TransactionLog) -> None:
    edges = pgbench.edges_ns(0, SECOND, 4 * SECOND)
    account = log.account(int(edges[0]), int(edges[-1]))
    throughput = pgbench.throughput_table(log, edges, ["a", "b"])
    assert sum(throughput["transactions"].to_pylist()) == account.succeeded
    assert sum(throughput["failed"].to_pylist()) == account.failed
    assert sum(throughput["skipped"].to_pylist()) == account.skipped
    assert sum(pgbench.latency_table(log, edges, ["a", "b"])["count"].to_pylist()) == account.succeeded


def test_half_a_million_lines_take_about_a_second(tmp_path: Path) -> None:
    count = 500_000
    random = np.random.default_rng(1)
    latency = random.gamma(2, 5000, count).astype(int).tolist()
    end_us = np.sort(random.integers(0, 60_000_000, count)).tolist()
    lines = (
        f"{i % 8} {i} {latency[i]} {i % 2} {1795265771 + end_us[i] // 1_000_000} {end_us[i] % 1_000_000}\n"
        for i in range(count)
    )
    paths = written(tmp_path, "".join(lines))
    begin = time.process_time()
    log = pgbench.read(paths, ANCHOR, open_loop=False, retries=False)
    edges = pgbench.edges_ns(100 * SECOND, 110 * SECOND, 160 * SECOND)
    table = pgbench.latency_table(log, edges, ["a", "b"])
    assert time.process_time() - begin < 4.0  # half a second as a rule; a loop over the lines takes far longer
    assert sum(table["count"].to_pylist()) == log.account(int(edges[0]), int(edges[-1])).succeeded == count


def test_a_log_extends_from_its_first_begin_to_after_its_last_end(tmp_path: Path) -> None:
    (path,) = written(tmp_path, "0 1 1000 0 1795265771 5000\n1 1 4000 0 1795265771 6000\n")
    log = pgbench.read([path], ANCHOR, open_loop=False, retries=False)
    assert log.extent_ns(1, 2) == (100_002_000_000, 100_006_000_001)
    assert log.account(*log.extent_ns(1, 2)).succeeded == 2
    assert pgbench.read([], ANCHOR, open_loop=False, retries=False).extent_ns(1, 2) == (1, 2)
