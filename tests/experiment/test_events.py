"""Events of a run: what a file may ask for, when they come, what is recorded of them, and what a failure does."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.series import Event, down_s, events_of, series_of
from pgdyno.base.errors import HostError, InputError, PgdynoError
from pgdyno.experiment.events import EventTable
from pgdyno.flow.plan import plan
from pgdyno.report import document
from pgdyno.report.export import markdown
from pgdyno.report.page import html
from pgdyno.report.sections import drawings
from pgdyno.report.terminal import table
from pgdyno.report.theme import PAPER
from pgdyno.results import open_experiment
from pgdyno.results.record import Check
from pgdyno.results.tables import SubjectClock
from pgdyno.world import events as event_checks
from pgdyno.world.events import EventTimeline
from pgdyno.world.fake import FAKE_MODIFIED_USD
from tests.experiment.documents import ONE_ARM, experiment
from tests.support.commands import pgdyno
from tests.support.pauses import assert_paused

if TYPE_CHECKING:
    from pathlib import Path

MODIFY = {"at": "1s", "do": "modify", "spec": "gp3:iops=6000"}
PAUSE = {"do": "fail", "fault": "pause", "for": "3s"}


def event(**keys: Any) -> str:
    """An event as a file has it."""
    lines = (f"{key} = {json.dumps(value)}" for key, value in keys.items())
    return "\n".join(("[[event]]", *lines, "", ""))


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ({"at": 1, "do": "heal"}, "event[1].at: 1 has no unit"),
        ({"at": "1s", "do": "snap"}, "event[1].do"),
        ({"at": "1s", "do": "heal", "spec": "gp3"}, 'event[1].spec: it is not for do = "heal"'),
        ({"at": "1s", "do": "heal", "offset": 1}, "event[1].offset: there is no such key"),
        ({"at": "1s", "do": "heal", "on": "server"}, "event[1].on"),
        ({"at": "1s", "do": "kill", "on": "data"}, "event[1].on"),
        ({"at": "1s", "do": "modify"}, "event[1].spec"),
        ({"at": "1s", "do": "fail"}, "event[1].fault"),
        ({"at": "1s", "do": "fail", "fault": "latency"}, "needs either `add` or `scenario`"),
        ({"at": "1s", "do": "fail", "fault": "pause", "add": "5ms"}, 'event[1].add: it is not for fault = "pause"'),
        ({"at": "1s", "do": "fail", "fault": "error", "reads": "120%"}, "event[1].reads: '120%' is not a share"),
        ({"at": "1s", "do": "fail", "fault": "error", "reads": "0%", "writes": "0%"}, "neither reads nor writes"),
        ({"at": "1s", "do": "fail", "fault": "error", "member": 0}, 'event[1].member: it is not for fault = "error"'),
        ({"at": "1s", "do": "fail", "fault": "lose", "member": -1}, "event[1].member"),
        ({"at": "2s", "do": "heal"}, "event[1].at: measuring ends after 2 s"),
        ({"at": "1s", "do": "modify", "spec": "gp3", "on": "all"}, 'do = "modify" happens to one volume'),
        ({"at": "1s", "do": "snapshot", "rate": "40MiB"}, "event[1].rate: '40MiB' is not a rate"),
        ({"at": "1s", "do": "snapshot", "for": "2s"}, 'event[1].for: it is not for do = "snapshot"'),
        ({"at": "1s", "do": "heal", "on": "wal"}, "event[1].on: there is no volume for `wal`"),
    ],
)
def test_an_event_that_cannot_happen_is_refused_at_its_key(asked: dict[str, Any], part: str) -> None:
    with pytest.raises(InputError) as refused:
        experiment(workload={"duration": "2s", "engine": "native"}, event=[asked])
    assert part in refused.value.message


def test_the_server_is_ended_only_under_a_driver_that_connects_again_and_only_where_pgdyno_started_it() -> None:
    kill = [{"at": "1s", "do": "kill"}]
    with pytest.raises(InputError, match="only pgdyno's own driver connects again"):
        experiment(workload={"duration": "2s", "engine": "pgbench"}, event=kill)
    with pytest.raises(InputError, match="pgdyno starts"):
        experiment(world={"kind": "real", "dsn": "host=db"}, workload={"duration": "2s"}, event=[MODIFY])


def test_events_are_a_part_of_what_can_change_a_result_and_experiments_without_them_are_as_before() -> None:
    plain, eventful = experiment(), experiment(event=[MODIFY])
    assert "event" not in plain.identity()
    assert plain.identity() != eventful.identity()
    assert eventful.settings()["event"] == [MODIFY]


def test_one_member_of_an_array_fails(engine: Path) -> None:
    slow = {"at": "1s", "do": "fail", "fault": "latency", "add": "10ms", "member": 3}
    duration = {"duration": "2s"}
    result = experiment(world={"volume": "raid10:4xgp3"}, workload=duration, event=[slow])
    [one] = result.file.event
    assert one.fault_document()["member"] == 3
    assert one.words == "fail data: latency 10 ms on member 3"
    plan(result, to_run=False)
    with pytest.raises(InputError, match=r"event\[1\]\.member: there is no member 3") as refused:
        plan(experiment(world={"volume": "2xgp3"}, workload=duration, event=[slow]), to_run=False)
    assert refused.value.remedy == "name one of 0 to 1"
    whole = {name: value for name, value in slow.items() if name != "member"}
    assert "member" not in experiment(workload=duration, event=[whole]).identity()["event"][0]


def happening(*document: dict[str, Any], failing: str = "") -> tuple[EventTimeline, list[str], threading.Event]:
    """A timeline whose events are noted, and one of which fails; the last is set when one has been done."""
    done: list[str] = []
    ended = threading.Event()

    def act(table: EventTable) -> str:
        try:
            if table.words == failing:
                raise HostError("the volume does not answer", remedy="attach another one")
            done.append(table.words)
            return "done"
        finally:
            if len(done) == len(document) or table.words == failing:
                ended.set()

    events = [EventTable.model_validate(other) for other in document]
    return EventTimeline(events, act, SubjectClock(0, 2)), done, ended


@pytest.mark.parametrize(
    ("world", "events", "code"),
    [
        ("gp3:size=10GiB", [("1s", "gp3:size=9GiB")], "smaller"),
        ("gp3:size=10GiB", [("1s", "gp3:size=10GiB,iops=3000")], "same"),
        ("gp3:size=10GiB", [("1s", "2xgp3:size=10GiB")], "layout"),
        ("gp3:size=10GiB", [("1s", "gp3:size=11GiB")], "cannot_grow"),
        ("gp3:size=10GiB", [("9s", "gp3:size=10GiB,iops=4000"), ("1s", "gp3:size=10GiB,iops=5000")], "too_soon"),
        (
            "gp3:size=10GiB",
            [(f"{second}s", f"gp3:size=10GiB,iops={3500 + second}") for second in range(1, 6)],
            "too_soon",
        ),
    ],
)
def test_a_modification_that_cannot_happen_is_refused_before_anything_is_made(
    engine: Path, monkeypatch: pytest.MonkeyPatch, world: str, events: list[tuple[str, str]], code: str
) -> None:
    monkeypatch.setattr(event_checks.preflight, "may_exceed_resources", lambda: False)
    monkeypatch.setattr(event_checks.os, "geteuid", lambda: 0)
    optimizing = {} if len(events) == 2 else {"optimizing": "0s"}
    result = experiment(
        world={"volume": world},
        workload={"duration": "20s", "engine": "native"},
        event=[{"at": at, "do": "modify", "spec": spec, **optimizing} for at, spec in events],
    )
    with pytest.raises(InputError) as refused:
        plan(result, to_run=False)
    assert refused.value.code == f"experiment.event.{code}"
    assert refused.value.data["key"] == f"event[{1 if len(events) < 3 else 5}].spec"


def test_a_modification_that_can_happen_is_planned(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_checks.preflight, "may_exceed_resources", lambda: True)
    monkeypatch.setattr(event_checks.preflight, "missing_programs", lambda *_names: [])
    at_once = {"do": "modify", "optimizing": "0s"}
    events = [
        {"at": "1s", "spec": "gp3:size=11GiB", **at_once},
        {"at": "1s", "spec": "io2bx:size=12GiB,iops=4000", **at_once},
    ]
    plan(
        experiment(world={"volume": "gp3:size=10GiB"}, workload={"duration": "20s", "engine": "native"}, event=events),
        to_run=False,
    )


def test_events_happen_in_the_subjects_time_and_are_recorded_with_begin_end_and_result() -> None:
    timeline, done, ended = happening({"at": "0.05s", "do": "heal"}, {"at": "0.1s", "do": "kill"})
    with timeline:
        timeline.begin()
        assert ended.wait(60)
        timeline.require_done()
    assert done == ["heal data", "kill the server"]
    rows = timeline.samples().tables["world/event"].to_pylist()
    assert [(row["planned_s"], row["kind"], row["target"], row["result"]) for row in rows] == [
        (0.05, "heal", "data", "done"),
        (0.1, "kill", "server", "done"),
    ]
    # At dilation 2 a second of the subject takes two: the second event comes 0.1 s of the host after the first, or later.
    assert rows[1]["t_begin_ns"] - rows[0]["t_begin_ns"] > 50_000_000
    assert all(row["t_begin_ns"] <= row["t_end_ns"] for row in rows)
    lost = Check(name="clients_lasted", ok=False, detail="4 connections were lost")
    other = Check(name="sums", ok=False, detail="a row is missing")
    explained = timeline.explained((lost, other))
    assert (explained[0].ok, explained[1].ok) == (True, False)
    assert "on purpose: kill the server" in explained[0].detail


def test_a_failed_event_is_a_failure_of_the_run_in_its_words_and_no_later_one_happens() -> None:
    timeline, done, ended = happening({"at": "0s", "do": "heal"}, {"at": "0.01s", "do": "kill"}, failing="heal data")
    with timeline:
        timeline.begin()
        with pytest.raises(
            PgdynoError, match="an event failed: heal data, 0 s after measuring began: the volume does not"
        ):
            while not ended.is_set() or timeline.error() is None:
                ended.wait(60)
            timeline.require_done()
    assert done == []


def test_a_run_that_ends_before_its_event_says_so() -> None:
    timeline, _, _ = happening({"at": "1h", "do": "heal"})
    with timeline:
        timeline.begin()
        with pytest.raises(PgdynoError, match="ended before an event: heal data, 3600 s after"):
            timeline.require_done()


def test_events_are_printed_before_and_marked_on_every_figure_over_time_after(engine: Path, tmp_path: Path) -> None:
    file = tmp_path / "trial.toml"
    happens = event(at="30s", do="modify", spec="gp3:size=20GiB,iops=6000") + event(at="10s", do="kill")
    file.write_text(ONE_ARM.format(kind="fake", seconds=60) + '[factors]\n"workload.clients" = [1, 2, 4]\n\n' + happens)
    dry = pgdyno("run", str(file), "--dry-run").out
    first, second = (line for line in dry.splitlines() if line.startswith("in each run: "))
    assert first == "in each run: 10 s after measuring began, kill the server"
    assert second.endswith("30 s after measuring began, modify data to gp3:size=20GiB,iops=6000")
    result = json.loads(pgdyno("run", str(file), "--dry-run", "--json").out)
    assert [event["do"] for event in result["events"]] == ["kill", "modify"]

    pgdyno("run", str(file), "--results", str(tmp_path), "--keep-invalid", code=0)
    comparison = summarise(next(tmp_path.glob("*-trial-*")))
    run = comparison.arms[0].replicates[0].figures.run
    assert [event.planned_s for event in events_of(run)] == [10.0, 30.0]
    assert [event.words for event in series_of(run).events] == [
        "kill the server",
        "modify data to gp3:size=20GiB,iops=6000",
    ]
    over_time = {
        drawing.name: json.dumps(drawing.make(900, PAPER))
        for drawing in drawings(comparison)
        if "over time" in drawing.title.lower() or drawing.name == "timeline"
    }
    assert set(over_time) >= {"timeline", "sweep-over-time"}
    for name, drawn in over_time.items():
        assert "kill the server, from 10.0 to 10.1 s" in drawn, name
    for text in (html(comparison), markdown(comparison), table(comparison)):
        assert "10 s: kill the server" in text
    (killed, modified) = document(comparison).arms[0].events
    assert (killed.kind, modified.target, modified.begin_s) == ("kill", "data", [pytest.approx(30.0, abs=0.01)])


def test_the_first_lines_say_what_happened_and_no_price_is_that_of_the_first_volume_alone(
    engine: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trial.toml"
    happens = event(at="2s", do="cut") + event(at="5s", do="modify", spec="io2bx:size=10GiB,iops=1000")
    file.write_text(ONE_ARM.format(kind="fake", seconds=60) + happens + event(at="10s", do="kill"))
    pgdyno("run", str(file), "--results", str(tmp_path), "--keep-invalid", code=0)
    comparison = summarise(next(tmp_path.glob("*-trial-*")))
    assert comparison.verdict.startswith("With 3 events, the server down for 0.200 of 60.0 s: ")
    assert comparison.arms[0].usd_per_month is None
    assert "$" not in comparison.verdict
    for text in (html(comparison), table(comparison), markdown(comparison)):
        assert "With 3 events" in text
        assert "per dollar a month" not in text
        assert "data: modified while measuring" in text
    assert "All checks of the run passed" in html(comparison) or not comparison.valid
    [arm] = document(comparison).arms
    assert arm.usd_per_month is None


def test_a_modified_volume_has_both_prices_and_the_work_before_and_after(engine: Path, tmp_path: Path) -> None:
    file = tmp_path / "trial.toml"
    file.write_text(
        ONE_ARM.format(kind="fake", seconds=60)
        + event(at="20s", do="modify", spec="io2bx:size=10GiB,iops=1000")
        + event(at="40s", do="kill")
    )
    pgdyno("run", str(file), "--results", str(tmp_path), "--keep-invalid", code=0)
    comparison = summarise(next(tmp_path.glob("*-trial-*")))
    [arm] = comparison.arms
    first, second = arm.usd_per_month_of_parts
    assert first == arm.data.usd_per_month
    assert second == FAKE_MODIFIED_USD
    assert second != first
    [modified, killed] = document(comparison).arms[0].events
    assert modified.usd_per_month == FAKE_MODIFIED_USD
    assert killed.usd_per_month is None
    [run] = [replicate.figures.run for replicate in arm.replicates]
    counted = run.table("workload/throughput").to_pylist()
    begin_ns = run.record.measure.begin_ns

    def rate(from_s: int, to_s: int) -> float:
        inside = [
            row["transactions"]
            for row in counted
            if from_s * 1e9 <= row["t_begin_ns"] - begin_ns and row["t_end_ns"] - begin_ns <= to_s * 1e9
        ]
        return sum(inside) / (to_s - from_s)

    # An event of this world lasts a tenth of a second, so that the second in which it began belongs to neither side.
    assert modified.before_per_s == [pytest.approx(rate(0, 20))]
    assert modified.after_per_s == [pytest.approx(rate(21, 40))]
    for text in (html(comparison), table(comparison), markdown(comparison)):
        assert "before" in text
        assert "$42" in text


def test_the_time_without_a_server_is_that_of_all_events_together_within_the_measuring() -> None:
    def ended(begin_s: float, end_s: float, kind: str = "kill") -> Event:
        return Event(begin_s, kind, "server", kind, begin_s, end_s, "recovered")

    assert down_s((ended(1, 3), ended(2, 4, "cut"), ended(3, 3.5), ended(5, 6, "fail")), 60) == 3
    assert down_s((ended(9, 12),), 10) == 1
    assert down_s((), 10) == 0


@pytest.mark.needs_fuse
@pytest.mark.sets_limits
def test_a_server_survives_all_events_of_a_run_with_every_row_and_a_refused_one_fails_the_run(
    state_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trial.toml"
    file.write_text(
        ONE_ARM.format(kind="emulated", seconds=18)
        + event(at="1s", do="modify", spec="gp3:size=10GiB,iops=5000", optimizing="0s", rule="2023")
        + event(at="2s", do="fail", fault="latency", add="20ms", writes="50%")
        + event(at="3s", do="heal")
        + event(at="4s", **PAUSE)
        # Two whole seconds are between the end of the pause and the kill.
        + event(at="10s", do="kill")
    )
    pgdyno("run", str(file), "--results", str(tmp_path), "--keep-invalid", code=0)
    (run,) = open_experiment(next(tmp_path.glob("*-trial-*"))).runs
    events = events_of(run)
    assert [event.kind for event in events] == ["modify", "fail", "heal", "fail", "kill"]
    assert all(event.begin_s >= event.planned_s and event.seconds > 0 for event in events)
    assert "gp3:size=10GiB,iops=5000" in events[0].result
    assert [event.result for event in events[1:]] == ["2 in force", "0 left", "1 in force", "recovered"]
    checks = {check.name: check for check in run.record.checks}
    assert all(check.ok for check in checks.values()), checks
    assert "on purpose: kill the server" in checks["clients_lasted"].detail
    assert run.record.driver is not None
    assert (run.record.driver.connections_lost or 0) >= 4, "four clients"
    assert_paused(run, events[3], 3.0)

    again = event(at="2s", do="modify", spec="gp3:size=10GiB,iops=5000", rule="2023")
    file.write_text(
        ONE_ARM.format(kind="emulated", seconds=60)
        + event(at="1s", do="modify", spec="gp3:size=10GiB,iops=4000", optimizing="0s", rule="2023")
        + again
    )
    known = pgdyno("run", str(file), "--results", str(tmp_path / "other"), code=2)
    assert known.error is not None
    assert known.error.code == "experiment.event.too_soon"
    monkeypatch.setattr(event_checks, "require_possible", lambda *_arguments: None)
    refused = pgdyno("run", str(file), "--results", str(tmp_path / "other"), code=1)
    assert "an event failed: modify data to gp3:size=10GiB,iops=5000, 2 s after measuring began" in refused.err
