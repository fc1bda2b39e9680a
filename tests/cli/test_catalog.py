"""The catalogue answers many questions in one process, and what is refused is refused for its question alone."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator

import pytest

from pgdyno.base import catalog, engine
from pgdyno.base.catalog import Catalog
from pgdyno.base.errors import EngineError, InputError
from pgdyno.base.specification import VolumeSpec

MANY = 10_000


@pytest.fixture
def opened() -> Iterator[Catalog]:
    with Catalog() as catalog:
        yield catalog


def _specs(count: int) -> list[str]:
    return [f"gp3:size={100 + number % 900}GiB,iops={3000 + number}" for number in range(count)]


def test_answers_come_in_the_order_of_the_questions_with_refusals_in_their_place(opened: Catalog) -> None:
    results = opened.resolve_all(["gp3", "gp3:iops=1", "4xgp2", "gp3"])
    assert [result.spec if isinstance(result, VolumeSpec) else type(result) for result in results] == [
        "gp3:size=100GiB,iops=3000,throughput=125",
        InputError,
        "4xgp2:size=100GiB,chunk=512KiB",
        "gp3:size=100GiB,iops=3000,throughput=125",
    ]
    refused = results[1]
    assert isinstance(refused, InputError) and refused.remedy == "gp3:iops=3000"


def test_an_answer_is_what_the_engine_says_to_the_same_question_alone(opened: Catalog) -> None:
    for spec in ("gp3:size=1TiB", "io2bx:iops=40000", "raid10:4xgp2", "gcp-pd-standard", "null"):
        assert (
            opened.resolve(spec).document == engine.run_json(["volume", "spec", spec]) == catalog.resolve(spec).document
        )
    assert opened.volume_types() == engine.run_json(["volume", "types"])["types"]
    assert opened.instance_types() == engine.run_json(["instance", "types"])["types"]


def test_more_questions_than_a_pipe_holds_are_answered(opened: Catalog) -> None:
    specs = _specs(500)
    assert [str(item).split(",throughput")[0] for item in opened.resolve_all(specs)] == specs


def test_a_question_that_is_longer_than_a_pipe_is_refused_and_the_next_one_is_answered(opened: Catalog) -> None:
    with pytest.raises(InputError, match="no volume type"):
        opened.resolve("x" * 300_000)
    assert opened.resolve("gp3").type == "gp3"


def test_a_line_that_is_no_question_is_refused_with_how_to_ask() -> None:
    conversation = engine.Conversation(["catalog"])
    try:
        first, second = conversation.ask([{"price": "gp3"}, {"resolve": "null"}])
    finally:
        conversation.close()
    assert isinstance(first, InputError) and '{"resolve": "gp3"}' in first.remedy
    assert second["type"] == "null"


def test_an_engine_that_ended_is_said_and_the_next_question_starts_another() -> None:
    conversation = engine.Conversation(["catalog"])
    try:
        [_] = conversation.ask([{"resolve": "gp3"}])
        process = conversation._process
        assert process is not None
        process.kill()
        with pytest.raises(EngineError, match="signal 9"):
            list(conversation.ask([{"resolve": "gp3"}]))
        [again] = conversation.ask([{"resolve": "gp3"}])
    finally:
        conversation.close()
    assert again["type"] == "gp3"
    assert process.poll() is not None


@pytest.mark.bench
def test_ten_thousand_specifications_resolve_in_a_second() -> None:
    """CPU of both processes, since the machine may be shared; beside a process for each, the way that it replaces."""
    begin = _cpu_s()
    with Catalog() as opened:
        assert all(isinstance(item, VolumeSpec) for item in opened.resolve_all(_specs(MANY)))
    resident_s = _cpu_s() - begin
    begin, sample = _cpu_s(), 50
    for spec in _specs(sample):
        engine.run_json(["volume", "spec", spec])
    spawned_s = (_cpu_s() - begin) * MANY / sample
    print(f"{MANY:,} specifications: {resident_s:.2f} s of CPU in one process, {spawned_s:.1f} s in one each")
    # Twice what a quiet core takes: one whose other hyperthread is busy counts up to that.
    assert resident_s <= 2.0
    assert spawned_s / resident_s >= 20


def _cpu_s() -> float:
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
