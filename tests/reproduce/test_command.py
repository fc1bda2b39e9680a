"""``pgdyno reproduce``: what it runs, resumes, leaves out and refuses, on a made-up world."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import jsonschema
import pytest

from pgdyno.base.errors import EXIT_HOST, EXIT_INTERRUPTED, EXIT_INVALID, EXIT_OK, EXIT_USAGE, HostError
from pgdyno.flow import run as flow_run
from pgdyno.published.library import arms_named, library
from pgdyno.results import list_experiments
from pgdyno.world.fake import Fake
from tests.analysis.synthetic import GP3
from tests.support.commands import pgdyno

if TYPE_CHECKING:
    from pgdyno.experiment import Cell
    from tests.reproduce.conftest import Shelf

pytestmark = pytest.mark.usefixtures("engine")
ROOT = Path(__file__).resolve().parents[2]


def _runs(shelf: Shelf) -> dict[str, int]:
    return {
        list_experiment.record.name: len(list_experiment.runs) for list_experiment in list_experiments(shelf.results)
    }


def _document(text: str) -> dict[str, object]:
    document = json.loads(text)
    jsonschema.validate(document, json.loads((ROOT / "schema" / "reproduce.schema.json").read_text()))
    assert isinstance(document, dict)
    return document


def test_quick_omits_what_full_runs_and_takes_the_runs_that_are_there(shelf: Shelf) -> None:
    ended = pgdyno("reproduce", "post", "--results", shelf.results, code=EXIT_OK)
    assert _runs(shelf) == {"trial": 4}
    assert "trial: " in ended.out
    assert len(list(shelf.results.glob("*/report.html"))) == 1
    made = {
        list_experiment.path: list_experiment.runs[0].record.anchor
        for list_experiment in list_experiments(shelf.results)
    }
    full = pgdyno("reproduce", "--full", "--json", "--results", shelf.results, code=EXIT_OK)
    assert _runs(shelf) == {"trial": 4, "larger": 4}
    assert (
        made.items()
        <= {
            list_experiment.path: list_experiment.runs[0].record.anchor
            for list_experiment in list_experiments(shelf.results)
        }.items()
    )
    [comparison] = _document(full.out)["documents"][0]["comparisons"]  # type: ignore[index] # JSON
    assert comparison["here"]["ratio"]["ratio"] == pytest.approx(4.0, rel=0.05)  # NOISE of the fake world
    assert (comparison["sign"], comparison["verdict"]) == ("right", "differs")
    again = pgdyno("reproduce", "--full", "--results", shelf.results, code=EXIT_OK)
    assert "run 1 of" not in again.err


def test_quick_runs_only_the_arms_that_comparisons_rest_on(shelf: Shelf) -> None:
    file = shelf.root / "experiments" / "trial.toml"
    file.write_text(file.read_text().replace('["gp3:size=100GiB", ', '["gp3:size=50GiB", "gp3:size=100GiB", '))
    listed = pgdyno("reproduce", "--list", code=EXIT_OK).out
    assert "  runs trial: about 49 s, with --full about 1 min 13 s" in listed
    pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    assert _runs(shelf) == {"trial": 4}
    pgdyno("reproduce", "--full", "--results", shelf.results, code=EXIT_OK)
    assert _runs(shelf) == {"trial": 6, "larger": 4}, "what quick made is taken"


def test_an_arm_that_an_answer_leaves_to_full_is_not_run_by_quick() -> None:
    [document] = library().chosen("huawei")
    experiment = library().experiment(document.run[0])
    quick = arms_named(document, experiment, full=False)
    left_out = {arm.label for arm in experiment.arms if arm.index not in quick}
    assert left_out == {"32 vCPUs, 128 GB", "64 vCPUs, 256 GB"}, "they take longer than all the others"


def test_an_arm_that_this_machine_cannot_run_is_left_out_alone(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = HostError("it needs 4 GiB, and 2 GiB are available", remedy="use less")
    monkeypatch.setattr(Fake, "refusal", lambda _, arm: refused if "io2bx" in arm.label else None)
    ended = pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    assert _runs(shelf) == {"trial": 2}
    assert "io2bx:size=100GiB,iops=16000 of trial is not run: it needs 4 GiB, and 2 GiB are available" in ended.err
    assert "io2bx:size=100GiB,iops=16000 of trial.toml has no finished run: it needs 4 GiB" in ended.out
    monkeypatch.setattr(Fake, "refusal", lambda _, __: refused)
    ended = pgdyno("reproduce", "--results", shelf.results / "other", code=EXIT_HOST)
    assert "not run: trial: it needs 4 GiB" in ended.err, "none is left"


def test_vcpus_are_not_compared_with_fewer_cores_than_stand_for_them(shelf: Shelf) -> None:
    cores = len(os.sched_getaffinity(0))
    shelf.write(('experiment = "trial"\n[[run]]', 'experiment = "trial"\nby_vcpus = true\n[[run]]'))
    file = shelf.root / "experiments" / "trial.toml"
    more = f"[instance]\nvcpus = {cores * 8}\n\n[workload]"
    file.write_text(file.read_text().replace("[workload]", more).replace('"fake"', '"fake"\ndilation = 4'))
    ended = pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    assert _runs(shelf) == {}
    why = f"at dilation 4 this machine's cores stand for {cores * 4} of its {cores * 8} vCPUs; dilation 8 would do"
    assert f"gp3:size=100GiB of trial is not run: {why}" in ended.err
    assert f"not answered: because it was not run: gp3:size=100GiB: {why}" in ended.out


def test_an_interrupted_one_is_resumed_by_the_same_command(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = flow_run.run_cell

    def cut(context: object, cell: Cell, *rest: object) -> Path:
        if cell.position == 2:
            raise KeyboardInterrupt
        return whole(context, cell, *rest)  # type: ignore[arg-type] # as it was called

    monkeypatch.setattr(flow_run, "run_cell", cut)
    ended = pgdyno("reproduce", "--results", shelf.results, code=EXIT_INTERRUPTED)
    assert "remedy: run the same command again" in ended.err
    assert _runs(shelf) == {"trial": 2}
    monkeypatch.undo()
    monkeypatch.setattr("pgdyno.base.installation.data_folder", lambda name: shelf.root / name)
    pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    assert _runs(shelf) == {"trial": 4}


KILLED = """
import sys, time
from pathlib import Path
from pgdyno.base import installation
from pgdyno.cli import main
from pgdyno.flow import run
root, results, position = sys.argv[1:]
installation.data_folder = lambda name: Path(root) / name
whole = run.run_cell
def slow(context, cell, *rest):
    print("run", cell.position, flush=True)
    if cell.position == int(position):
        time.sleep(600)
    return whole(context, cell, *rest)
run.run_cell = slow
main.run(["reproduce", "--results", results])
"""


@pytest.mark.parametrize("position", [0, 3])
def test_a_killed_one_is_resumed_by_the_same_command(shelf: Shelf, position: int) -> None:
    words = [sys.executable, "-c", KILLED, str(shelf.root), str(shelf.results), str(position)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        deadline = time.monotonic() + 60
        while process.stdout.readline() != f"run {position}\n":
            assert time.monotonic() < deadline
        os.kill(process.pid, signal.SIGKILL)
    assert _runs(shelf) == {"trial": position}
    [directory] = shelf.results.iterdir()
    (directory / "loads" / "00-scale-2.partial").mkdir(parents=True)  # as of a load that was being made
    pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    assert _runs(shelf) == {"trial": 4}
    assert len(list(shelf.results.iterdir())) == 1
    assert list(shelf.results.rglob("*.partial")) == []


def test_runs_of_a_changed_file_are_not_mixed(shelf: Shelf) -> None:
    pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    file = shelf.root / "experiments" / "trial.toml"
    file.write_text(file.read_text().replace("clients = 64", "clients = 65"))
    pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    assert [len(list_experiment.runs) for list_experiment in list_experiments(shelf.results)] == [4, 4]
    recorded = pgdyno("reproduce", "--from", shelf.results, code=EXIT_OK)
    assert "recorded with" not in recorded.out, "of two results the one that equals the file is taken"


def test_recorded_results_say_in_what_they_differ_from_the_file(shelf: Shelf) -> None:
    pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    file = shelf.root / "experiments" / "trial.toml"
    file.write_text(file.read_text().replace("clients = 64", "clients = 65"))
    ended = pgdyno("reproduce", "--from", shelf.results, code=EXIT_OK)
    assert "recorded with workload.clients 64 instead of 65" in ended.out
    assert "differs (by runs that differ from the experiment file): because the disks are slow" in ended.out


def test_a_document_that_is_not_there_is_refused_with_the_list(shelf: Shelf) -> None:
    shelf.write(('title = "A post"', 'title = "Another"'), name="other")
    ended = pgdyno("reproduce", "pots", code=EXIT_USAGE)
    assert "error: there is no document `pots`" in ended.err
    assert "remedy: did you mean `post`? the documents are other, post" in ended.err


def test_a_budget_in_which_nothing_fits_is_refused_before_anything_runs(shelf: Shelf) -> None:
    ended = pgdyno("reproduce", "--budget", "10s", "--results", shelf.results, code=EXIT_USAGE)
    assert "no experiment fits into 10 s, so no comparison would get an interval" in ended.err
    assert "the shortest, trial, takes about 49 s" in ended.err
    assert _runs(shelf) == {}


def test_what_a_budget_leaves_out_is_named_with_the_comparisons(shelf: Shelf) -> None:
    ended = pgdyno("reproduce", "--full", "--budget", "1min", "--results", shelf.results, code=EXIT_OK)
    assert "the budget leaves out larger, about 49 s; without it: b to a" in ended.err
    assert _runs(shelf) == {"trial": 4}
    assert "larger: it does not fit into the budget" in ended.out


def test_without_root_the_runs_that_are_there_still_answer(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    pgdyno("reproduce", "--results", shelf.results, code=EXIT_OK)
    [directory] = shelf.results.iterdir()
    for run in (directory / "runs").glob("*-r2"):
        shutil.rmtree(run)
    _refuse_to_run(monkeypatch)
    ended = pgdyno("reproduce", "--results", shelf.results, code=EXIT_HOST)
    assert "not answered: because each arm ran only once" in ended.out


def _refuse_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Fake.open.__func__  # type: ignore[attr-defined] # a class method

    def refused(cls: type[Fake], experiment: object, *, to_run: bool, yes_create: bool) -> Fake:
        if to_run:
            raise HostError("mounting a volume needs root", remedy="run it with sudo")
        results = whole(cls, experiment, to_run=to_run, yes_create=yes_create)
        assert isinstance(results, Fake)
        return results

    monkeypatch.setattr(Fake, "open", classmethod(refused))


def test_without_root_what_needs_no_run_is_printed_and_the_rest_named(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    _refuse_to_run(monkeypatch)
    offer = 'metric = "usd_per_month"\nhigh = "gp3:size=208GiB"\nlow = "gp3:size=100GiB"'
    shelf.write(('name = "b to a"\nhigh = "tps_b"\nlow = "tps_a"\nstated = "ratio"\n', OFFER.format(offer=offer)))
    ended = pgdyno("reproduce", "--results", shelf.results, code=EXIT_HOST)
    assert "error: not run: trial: mounting a volume needs root\n  remedy: run it with sudo" in ended.err
    assert "there 2.08 (208 / 100 TPS); here 2.08 (16.64 / 8 USD a month)" in ended.out
    assert "not answered: because it was not run: mounting a volume needs root" in ended.out


OFFER = """name = "price"
high = "tps_b"
low = "tps_a"
[comparison.offer]
{offer}
[[comparison]]
name = "b to a"
high = "tps_b"
low = "tps_a"
stated = "ratio"
"""


def test_invalid_runs_are_in_the_exit_code(shelf: Shelf) -> None:
    from dataclasses import replace

    shelf.record(low=replace(GP3, late_share=0.9, overrun_share=0.9))
    assert "some runs are unreliable" in pgdyno("reproduce", "--from", shelf.results, code=EXIT_INVALID).err
    pgdyno("reproduce", "--from", shelf.results, "--keep-invalid", code=EXIT_OK)


def test_from_runs_nothing_so_it_has_no_budget(shelf: Shelf) -> None:
    ended = pgdyno("reproduce", "--from", shelf.results, "--budget", "1h", code=EXIT_USAGE)
    assert "--from runs nothing" in ended.err


def test_the_list_has_each_documents_experiments_with_their_time(shelf: Shelf) -> None:
    ended = pgdyno("reproduce", "--list", code=EXIT_OK)
    assert ended.out.splitlines() == [
        "post: A post; --quick about 49 s, --full about 1 min 38 s",
        "  runs trial: about 49 s",
        "  runs larger: about 49 s, with --full",
        "  b to a: 2.08 there; by trial",
    ]
    [document] = json.loads(pgdyno("reproduce", "--list", "--json", code=EXIT_OK).out)["documents"]
    assert [experiment["full_only"] for experiment in document["experiments"]] == [False, True]


def test_the_page_is_written_where_it_was_asked_for(shelf: Shelf, tmp_path: Path) -> None:
    shelf.record()
    page = tmp_path / "page.html"
    ended = pgdyno("reproduce", "--from", shelf.results, "--html", page, code=EXIT_OK)
    assert f"page: {page}" in ended.out
    assert "Nothing is fitted to a published figure" in page.read_text()


def test_the_five_documents_are_listed_with_their_times() -> None:
    documents = json.loads(pgdyno("reproduce", "--list", "--json", code=EXIT_OK).out)["documents"]
    assert [document["name"] for document in documents] == ["article-2013", "bulk-load", "huawei", "io2", "whitepaper"]
    assert sum(len(document["comparisons"]) for document in documents) >= 30
    quick_s = sum(each["quick_seconds"] or 0.0 for document in documents for each in document["experiments"])
    assert 0 < quick_s <= 75 * 60
