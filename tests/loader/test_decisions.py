"""What is decided and said by figures alone: indexes, limits, forecasts, settings. No server."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import InputError
from pgdyno.loader import forecast, recommend
from pgdyno.loader.index_cost import IndexCost, IndexForecast, choose, predict
from pgdyno.loader.limit import UNKNOWN, LoadLimit, Tally, name_of, shares
from pgdyno.loader.measured import SampleSizes

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
ASCENDING = [IndexCost("a", ascending=True), IndexCost("b", ascending=True)]
RANDOM = [IndexCost(name, ascending=False) for name in "abc"]
ROWS_4_GB = 40_000_000
"""pg_bulkload's 4 GB at about 100 bytes a row; the choice does not depend on the size of rows."""


def test_the_crossover_that_pg_bulkload_has_published() -> None:
    """One session, serial builds, ascending keys: into an empty table building wins (333 s against 500), 1 GB on 4 GB
    keeping does (140 s against 187)."""
    serial = {"sessions": 1, "builds": 1, "cores": 8}
    assert predict(ASCENDING, 0, ROWS_4_GB, **serial).choice == "rebuild"
    assert predict(ASCENDING, ROWS_4_GB, ROWS_4_GB / 4, **serial).choice == "keep"


@pytest.mark.parametrize(
    ("share", "better"), [(0.05, "keep"), (0.10, "keep"), (0.20, "rebuild"), (0.50, "rebuild"), (1.0, "rebuild")]
)
def test_the_crossover_of_random_keys_on_two_cores(share: float, better: str) -> None:
    """1.5 million rows, three indexes, PostgreSQL 18: 2.0 against 2.4 s at 10 %, 3.6 against 2.8 s at 20 %. Ten times the
    rows, so that what is gained is more than the second that a lock is worth."""
    rows = 15_000_000
    assert predict(RANDOM, rows, share * rows, sessions=2, builds=3, cores=2).choice == better


@pytest.mark.parametrize(("share", "kept_s", "built_s"), [(0.2, 3.6, 2.8), (0.5, 9.6, 4.0), (1.0, 18.6, 6.8)])
def test_the_model_is_near_what_was_measured(share: float, kept_s: float, built_s: float) -> None:
    """Copying takes 1.2 s for 100 %. A third off is enough to choose by: the crossover moves by as much."""
    rows = 1_500_000
    result = predict(RANDOM, rows, share * rows, sessions=2, builds=3, cores=2)
    assert result.keep_s + 1.2 * share == pytest.approx(kept_s, rel=1 / 3)
    assert result.rebuild_s + 1.2 * share == pytest.approx(built_s, rel=1 / 3)


@given(
    before=st.floats(0, 1e9),
    new=st.floats(0, 1e9),
    more=st.floats(0, 1e9),
    indexes=st.integers(1, 9),
    cores=st.integers(1, 64),
)
def test_more_rows_before_never_speak_for_building_again(
    before: float, new: float, more: float, indexes: int, cores: int
) -> None:
    some = [IndexCost(str(number), ascending=number % 2 == 0) for number in range(indexes)]
    fewer, larger = (
        predict(some, rows, new, sessions=2, builds=indexes, cores=cores) for rows in (before, before + more)
    )
    assert larger.rebuild_s >= fewer.rebuild_s
    assert not (fewer.choice == "keep" and larger.choice == "rebuild")


def test_what_was_asked_for_goes_before_the_model_and_nothing_droppable_before_both() -> None:
    shorter = IndexForecast(10.0, 1.0, "rebuild", "why")
    assert choose("auto", shorter, 3) == (True, "why")
    assert choose("keep", shorter, 3)[0] is False
    assert choose("rebuild", IndexForecast(1.0, 10.0, "keep", "why"), 3)[0] is True
    assert choose("rebuild", shorter, 0)[0] is False


def tally(events: dict[tuple[str, str], int], **threads_ms: float) -> Tally:
    made = Tally()
    made.add(events, threads_ms)
    return made


CPU = ("CPU", "CPU")


@pytest.mark.parametrize(
    ("waits", "name"),
    [
        (tally({CPU: 9, ("IO", "WalSync"): 1}), "COPY on the server's CPU"),
        (tally({CPU: 2, ("IO", "WalSync"): 3, ("LWLock", "WALWrite"): 3}), "WAL"),
        (tally({CPU: 2, ("IO", "WALWrite"): 3}), "WAL"),
        (tally({CPU: 4, ("Lock", "extend"): 6}), "extension lock"),
        (tally({CPU: 1, ("Lock", "relation"): 6}), "locks of others"),
        (tally({CPU: 1, ("IO", "DataFileExtend"): 6}), "writes to the volume"),
        (tally({CPU: 1, ("IO", "DataFileRead"): 6}), "reads of the volume"),
        (tally({CPU: 1, ("Client", "ClientRead"): 6}), "the client"),
        (tally({CPU: 5}, server_ms=400, queue_empty_ms=600), "reading the file"),
        (tally({CPU: 5}, server_ms=600, queue_empty_ms=400), "COPY on the server's CPU"),
        (tally({CPU: 5}, server_ms=100, rate_ms=900), "the rate that was asked for"),
        (tally({}), UNKNOWN),
        (tally({}, server_ms=1000), UNKNOWN),
    ],
)
def test_the_limit_is_what_the_sessions_wait_for(waits: Tally, name: str) -> None:
    assert waits.limit().name == name


def test_a_limit_knows_of_compression_and_of_indexes() -> None:
    assert tally({CPU: 5}, server_ms=1, queue_empty_ms=9).limit(compressed=True) == LoadLimit("decompression", 0.9)
    assert "3 indexes" in tally({CPU: 5}).limit(indexes=3).name
    assert name_of(("Buffer", "BufferExclusive")) == name_of(("LWLock", "BufferContent")), (
        "its name from PostgreSQL 19 on"
    )
    assert name_of(("Timeout", "VacuumDelay")) == "Timeout: VacuumDelay", "what has no better name keeps its own"
    assert str(LoadLimit("WAL", 0.5)) == "WAL (50%)"


def test_the_shares_of_limits_are_those_of_the_seconds() -> None:
    assert shares([LoadLimit("WAL", 0.9), LoadLimit("WAL", 0.6), LoadLimit("the client", 0.5)]) == {
        "WAL": 2 / 3,
        "the client": 1 / 3,
    }
    assert shares([]) == {}


@given(
    st.dictionaries(st.tuples(st.sampled_from(["IO", "Lock", "LWLock", "CPU"]), st.text(max_size=5)), st.integers(1, 9))
)
def test_a_verdict_is_never_without_evidence(events: dict[tuple[str, str], int]) -> None:
    limit = tally(events).limit()
    assert (limit.name == UNKNOWN) == (not events)
    assert 0.0 <= limit.share <= 1.0


def measured(**other: Any) -> SampleSizes:
    """A sample of 10 MiB in 0.2 s, that is 50 MiB/s, of which 2.3 bytes a byte reach the volume."""
    facts = {"input_bytes": 10 * MIB, "rows": 1000, "seconds": 0.2, "heap_bytes": 13 * MIB, "index_bytes": 0}
    return SampleSizes(**(facts | {"wal_bytes": 10 * MIB, "decompress_bytes_per_s": None} | other))


def test_a_small_volume_is_the_limit_of_two_sessions() -> None:
    """125 MiB/s of gp3 are 54 MiB/s of the file, as was measured for one session of COPY."""
    limits = {"iops": 3000.0, "throughput_bytes_per_s": 125.0 * MIB}
    result = forecast.forecast(measured(), 1000.0 * MIB, sessions=2, cores=2, files=1, volume=limits)
    assert [part.name for part in result.parts] == [
        "the volume's throughput",
        "COPY on the server's CPU",
        "the volume's IOPS",
    ]
    assert result.parts[0].bytes_per_s == pytest.approx(125 * MIB / 2.3)
    assert result.seconds == pytest.approx(1000 * 2.3 / 125)


def test_decompression_and_the_rate_are_limits_too() -> None:
    slow = measured(decompress_bytes_per_s=20.0 * MIB)
    result = forecast.forecast(slow, None, sessions=4, cores=2, files=1, rate_bytes_per_s=30 * MIB)
    assert [part.name for part in result.parts] == [
        "decompression",
        "the rate that was asked for",
        "COPY on the server's CPU",
    ]
    assert result.seconds is None, "of a stream nobody knows how long it takes"


@given(st.floats(1, 1e12), st.integers(0, 1 << 40), st.booleans())
def test_held_wal_never_needs_less_space(size: float, max_wal: int, held: bool) -> None:
    kept = forecast.space(measured(), size, max_wal_bytes=max_wal, wal_is_held=True, free_bytes=None)
    space = forecast.space(measured(), size, max_wal_bytes=max_wal, wal_is_held=held, free_bytes=None)
    assert space.needed <= kept.needed
    assert space.enough is None


def test_a_disk_that_would_fill_is_not_enough() -> None:
    for free, enough in ((1000 * MIB, False), (4000 * MIB, True)):
        space = forecast.space(measured(), 1000.0 * MIB, max_wal_bytes=MIB, wal_is_held=False, free_bytes=free)
        assert space.enough is enough


def current(**other: str) -> dict[str, dict[str, Any]]:
    values = {"max_wal_size": "1024", "checkpoint_timeout": "300", "wal_compression": "off"} | other
    units = {"max_wal_size": "MB", "checkpoint_timeout": "s"}
    return {
        name: {
            "name": name,
            "setting": value,
            "unit": units.get(name),
            "context": "sighup",
            "source": "default",
            "sourcefile": None,
        }
        for name, value in values.items()
    }


def test_settings_are_proposed_where_checkpoints_would_be_forced() -> None:
    document = {"wal_bytes_per_s": 50.0 * MIB, "wal_bytes_total": 100e9, "volume_binds": True}
    settings = recommend.settings(current(), free_bytes=None, **document)
    assert [setting.name for setting in settings] == ["max_wal_size", "checkpoint_timeout", "wal_compression"]
    assert int(settings[0].proposed) == math.ceil((50 * 1800 + 3 * 16) * 1.9)
    older = recommend.settings(current(checkpoint_completion_target="0.5"), free_bytes=None, **document)
    assert int(older[0].proposed) == math.ceil((50 * 1800 + 3 * 16) * 1.5)
    bounded = recommend.settings(current(), free_bytes=20_000 * MIB, **document)
    assert int(bounded[0].proposed) == 10_000
    assert bounded[0].reason.startswith("half of the free space; 171,092 MB would be needed")
    assert recommend.settings({}, free_bytes=None, **(document | {"volume_binds": False})) == []
    small = recommend.settings(current(), wal_bytes_per_s=1e6, wal_bytes_total=1e6, free_bytes=None, volume_binds=False)
    assert small == [], "a load that fits between two checkpoints needs nothing"


@pytest.mark.parametrize(
    ("source", "sourcefile", "undone"),
    [
        ("default", None, ["ALTER SYSTEM RESET max_wal_size;"]),
        ("configuration file", "/etc/postgresql/15/main/postgresql.conf", ["ALTER SYSTEM RESET max_wal_size;"]),
        ("configuration file", "/var/lib/pg/postgresql.auto.conf", ["ALTER SYSTEM SET max_wal_size = '2048MB';"]),
        ("configuration file", None, ["ALTER SYSTEM RESET max_wal_size;"]),
        ("command line", None, []),
    ],
)
def test_undoing_brings_back_where_a_value_came_from(
    tmp_path: Path, source: str, sourcefile: str | None, undone: list[str]
) -> None:
    """The value itself would stay in postgresql.auto.conf, and shadow postgresql.conf from then on."""
    rows = current(max_wal_size="2048")
    rows["max_wal_size"] |= {"source": source, "sourcefile": sourcefile}
    settings = recommend.settings(
        rows, wal_bytes_per_s=50.0 * MIB, wal_bytes_total=None, free_bytes=None, volume_binds=False
    )
    names = {path.name for path in recommend.write(settings, tmp_path)}
    assert names == {"settings.sql", "settings-undo.sql", "parameters-1.json", "parameters-undo-1.json"}
    made = (tmp_path / "settings.sql").read_text().splitlines()
    assert made[0].startswith("ALTER SYSTEM SET max_wal_size = '171092MB';" if undone else "-- max_wal_size is set")
    lines = (tmp_path / "settings-undo.sql").read_text().splitlines()
    run = [line for line in lines if "max_wal_size" in line and not line.startswith("--")]
    assert run == undone
    assert ("-- ALTER SYSTEM SET max_wal_size = '2048MB';" in lines) is (
        source[0] == "c" and sourcefile is None and bool(undone)
    )
    assert "ALTER SYSTEM RESET checkpoint_timeout;" in lines
    group = json.loads((tmp_path / "parameters-1.json").read_text())["Parameters"]
    assert group[0] == {"ParameterName": "max_wal_size", "ParameterValue": "171092", "ApplyMethod": "immediate"}
    back = json.loads((tmp_path / "parameters-undo-1.json").read_text())["Parameters"]
    assert back[0] == {"ParameterName": "max_wal_size", "ApplyMethod": "immediate"}, "a formula comes back as one"


def test_files_that_say_how_to_undo_are_not_overwritten(tmp_path: Path) -> None:
    """After their settings were made, a second dry run would write these as what was before."""
    folder = tmp_path / "advice"
    recommend.write([], folder)
    with pytest.raises(InputError, match=r"settings\.sql already exists"):
        recommend.write([], folder)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        recommend.write([], tmp_path / "file" / "advice")


def test_a_call_of_rds_has_twenty_parameters_at_most() -> None:
    some = [
        recommend.LoadSetting(f"s{number}", "1", "2", "", "postmaster" if number == 0 else "sighup", "default", "why")
        for number in range(41)
    ]
    calls = recommend.parameter_groups(some, inverse=False)
    assert [len(call["Parameters"]) for call in calls] == [20, 20, 1]
    assert calls[0]["Parameters"][0]["ApplyMethod"] == "pending-reboot"
    assert recommend.alter_system(some, inverse=False).endswith("-- restart the server\n")
