"""The record of how fast loading is: what it comes to, what its claims say of it, its page, and its files."""

from __future__ import annotations

import gzip
import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import InputError
from tools.loader import claim, files, other, page
from tools.loader.arm import (
    ARMS,
    COMMAND,
    COMMAND_INDEXED,
    COMMAND_SCATTERED,
    ENGINE,
    GZIP,
    PEER,
    PSQL,
    PSQL_INDEXED,
    PSQL_SCATTERED,
    SERVER,
    beside_peer,
)
from tools.loader.record import MEMORY_BYTES_MAX, Record, Run, beside, bounds, ratio

if TYPE_CHECKING:
    from pathlib import Path

LOADED_S = {SERVER: 2.0, PSQL: 4.0, ENGINE: 2.0, GZIP: 2.5, PSQL_INDEXED: 20.0, COMMAND_INDEXED: 3.5}
LOADED_S |= {PSQL_SCATTERED: 24.0, COMMAND_SCATTERED: 4.0}
CPU_S = {ENGINE: (3.6, 0.2), GZIP: (3.6, 0.8)}
"""Of the server and of the client."""
ROUNDS = 3


def record(changed: dict[str, float] | None = None, *, without: tuple[str, ...] = ()) -> Record:
    """A record on two cores; ``changed`` are seconds of arms."""
    seconds = LOADED_S | (changed or {})
    runs = []
    for number in range(1, ROUNDS + 1):
        drift = 1 + number / 10
        for arm, loaded_s in seconds.items():
            if arm in without:
                continue
            server_s, client_s = CPU_S.get(arm, (3.6, 0.0))
            runs.append(
                Run(
                    arm=arm,
                    round=number,
                    megabytes=200.0,
                    loaded_s=loaded_s * drift,
                    checkpoint_s=0.5 * drift,
                    server_cpu_s=server_s,
                    client_cpu_s=client_s,
                    rss_bytes_max=60 << 20 if arm in CPU_S else None,
                )
            )
    begin = datetime(2026, 11, 22, 9, 40, tzinfo=UTC)
    where = {"cores": 2, "kernel": "6.1", "build_hash": "0123456789abcdef", "versions": ["PostgreSQL 18.6"]}
    return Record(begin=begin, runs=runs, left_out=["pgloader: pgloader is not installed"], **where)


def test_a_ratio_is_of_one_round_each_so_that_drift_cancels() -> None:
    result = beside(record(), ENGINE, PSQL)
    assert (result.low, result.value, result.high) == pytest.approx((4.5 / 2.5,) * 3)
    assert result.pairs == 3
    missing = record()
    fewer = missing.model_copy(update={"runs": [run for run in missing.runs if (run.arm, run.round) != (PSQL, 2)]})
    assert beside(fewer, ENGINE, PSQL).pairs == 2


@given(st.lists(st.floats(0.01, 100.0), min_size=1, max_size=9))
def test_a_ratio_lies_among_its_values_and_in_its_interval(values: list[float]) -> None:
    result = ratio(values)
    assert result.low <= result.value <= result.high
    assert min(values) <= result.value * (1 + 1e-9)
    assert result.value <= max(values) * (1 + 1e-9)


def test_what_a_packed_file_could_reach_is_the_smaller_of_one_core_and_all() -> None:
    """0.6 s more for 200 MB are 3 ms/MB; with 19 ms/MB of COPY two cores do 2 / 22 ms."""
    bound = bounds(record(), GZIP, ENGINE)[0]
    assert (bound.unpack_s, bound.copy_s) == pytest.approx((0.003, 0.019))
    assert bound.per_s == pytest.approx(2 / 0.022)
    assert bound.reached_per_s == pytest.approx(200 / (2.5 * 1.1))
    many = record().model_copy(update={"cores": 64})
    assert bounds(many, GZIP, ENGINE)[0].per_s == pytest.approx(1 / 0.003), "one thread decompresses"


def test_all_claims_hold_where_all_is_well_and_each_breaks_alone() -> None:
    fast = record({GZIP: 2.0})
    assert [item.name for item in claim.judge(fast)] == list(claim.NAMES)
    assert [item.name for item in claim.judge(fast) if not item.holds] == []
    heavy = [run.model_copy(update={"rss_bytes_max": MEMORY_BYTES_MAX + 1}) for run in fast.runs]
    busy = [run.model_copy(update={"server_cpu_s": 1.0}) if run.arm == ENGINE else run for run in fast.runs]
    for name, broken in {
        claim.PLAIN: record({GZIP: 2.0, SERVER: 1.5}),
        claim.PSQL: record({GZIP: 2.0, PSQL: 3.0}),
        claim.PACKED: record({GZIP: 4.0}),
        claim.INDEXED: record({GZIP: 2.0, PSQL_INDEXED: 10.0}),
        claim.SCATTERED: record({GZIP: 2.0, PSQL_SCATTERED: 10.0}),
        claim.MEMORY: fast.model_copy(update={"runs": heavy}),
        claim.CLIENT: fast.model_copy(update={"runs": busy}),
    }.items():
        assert name in [item.name for item in claim.judge(broken) if not item.holds], name
    for item in claim.judge(fast):
        assert str(item).endswith(": holds")


@pytest.mark.parametrize(("seconds", "holds"), [(4.05, True), (4.2, False), (2.0, True)])
def test_a_checkout_is_held_against_its_peer(seconds: float, holds: bool) -> None:
    judged = claim.beside_peer(record({COMMAND: seconds, PEER: 4.0}))
    times = f"{(seconds + 0.5) / 4.5:.3f}"
    assert (judged.found, judged.holds) == (f"{times} ({times} to {times}) × in 3 pairs", holds)


def test_a_single_pair_has_no_interval() -> None:
    both = record({COMMAND: 4.0, PEER: 4.0})
    with pytest.raises(InputError, match="single pair"):
        claim.beside_peer(both.model_copy(update={"runs": [run for run in both.runs if run.round == 1]}))


def test_a_peer_is_a_program_with_an_engine_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="is no program"):
        beside_peer(tmp_path)
    program = tmp_path / "pgdyno"
    program.touch(0o755)
    assert [arm.name for arm in beside_peer(program)] == [COMMAND, PEER]
    monkeypatch.setenv("PGDYNO_ENGINE", "/any")
    with pytest.raises(InputError, match="engine of both"):
        beside_peer(program)


def test_without_psql_nothing_is_claimed_beside_it() -> None:
    result = record(without=(PSQL, PSQL_INDEXED, PSQL_SCATTERED))
    assert {claim.PSQL, claim.INDEXED, claim.SCATTERED}.isdisjoint(item.name for item in claim.judge(result))
    assert "× `psql" in page.render(result, claim.judge(result)), "the column stays, empty"


def test_the_page_has_claims_arms_and_what_was_left_out() -> None:
    result = record()
    text = page.render(result, claim.judge(result))
    assert (
        "2026-11-22 09:40 UTC, on 2 cores, Linux 6.1; PostgreSQL 18.6; engine 0123456789ab. 3 rounds, 200 MB." in text
    )
    assert "Left out: pgloader: pgloader is not installed." in text
    assert "| gzip | ≥ 0.9 × min(1/D, cores/(D + C)) |" in text
    plain, indexed = text.split("## With three indexes")
    assert f"| {ENGINE} | 67 | 83 | 1.80 (1.80 to 1.80) | 18.0 | 1.0 | 60 |" in plain
    assert f"| {COMMAND_INDEXED} | 42 | 48 | 5.13 (5.13 to 5.13) |" in indexed
    assert f"| {COMMAND_SCATTERED} | 37 | 42 | 5.44 (5.44 to 5.44) |" in indexed
    assert f"| {PSQL_SCATTERED} | 7 | 7 |  |" in indexed
    assert COMMAND_INDEXED not in plain.split("## Plain and packed")[1]


def test_a_record_is_kept_and_found_again(tmp_path: Path) -> None:
    assert Record.latest(tmp_path) is None
    path = record().save(tmp_path)
    assert Record.latest(tmp_path) == record()
    assert path.name == "20261122-094000.json"


def test_the_files_have_the_same_rows_in_whole_in_halves_and_packed(tmp_path: Path) -> None:
    made = files.write(tmp_path / "files", 1)
    whole = made.whole.path.read_bytes()
    assert b"".join(half.read_bytes() for half in made.halves) == whole == gzip.decompress(made.gzip.path.read_bytes())
    assert whole.count(b"\n") == made.whole.rows == made.gzip.rows
    assert made.gzip.megabytes == made.whole.megabytes == pytest.approx(1.0, rel=0.15), "about a hundred bytes a row"
    scattered = [int(line.split("\t")[0]) for line in made.scattered.path.read_text().splitlines()]
    assert sorted(scattered) == list(range(made.scattered.rows))
    assert sum(before < after for before, after in itertools.pairwise(scattered)) < 0.7 * len(scattered), "in no order"
    lines = made.indexed.path.read_text().splitlines()
    assert len(lines) == made.indexed.rows
    words = [line.split("\t")[3] for line in lines]
    assert len(set(words)) == len(words)
    assert sum(before < after for before, after in itertools.pairwise(words)) < 0.7 * len(words), "in no order"


def test_each_arm_has_a_name_of_its_own_and_a_program_that_is_absent_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len({arm.name for arm in ARMS}) == len(ARMS)
    monkeypatch.setenv("PATH", str(tmp_path))
    absent = {program.name: program.missing(tmp_path) for program in other.PROGRAMS if program.name != "DuckDB"}
    assert absent == dict.fromkeys(("timescaledb-parallel-copy", "pgloader"), "not installed")
