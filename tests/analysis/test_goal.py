"""Goals as people write them, and what is refused of them."""

from __future__ import annotations

import time

import pytest

from pgdyno.base.errors import InputError
from pgdyno.base.goal import LENGTH_MAX, parse_goal, read_goal, require_measured


@pytest.mark.parametrize(
    ("text", "conditions"),
    [
        ("tps>=2000, p99<=20ms", [("tps", ">=", 2000.0), ("p99", "<=", 20.0)]),
        (" TPS > 1500.5 ", [("tps", ">", 1500.5)]),
        ("p95<0.5s,p50 <= 800us", [("p95", "<", 500.0), ("p50", "<=", 0.8)]),
        ("nopm≥12000", [("nopm", ">=", 12000.0)]),
        ("seconds<=2min", [("seconds", "<=", 120.0)]),
        ("response<=5ms, late<=1s", [("response", "<=", 5.0), ("late", "<=", 1.0)]),
        ("price<=$50, geomean<=1.5s", [("price", "<=", 50.0), ("geomean", "<=", 1.5)]),
    ],
)
def test_conditions_are_in_the_unit_of_their_figure(text: str, conditions: list[tuple[str, str, float]]) -> None:
    results = parse_goal(text, "--goal").conditions
    assert [(result.name, result.operator) for result in results] == [
        (name, operator) for name, operator, _ in conditions
    ]
    assert [result.value for result in results] == pytest.approx([value for *_, value in conditions])


@pytest.mark.parametrize(
    ("text", "code", "part"),
    [
        ("", "goal.empty", ""),
        ("  ", "goal.empty", "  "),
        ("tps>=2000,", "goal.part.unreadable", ""),
        ("fast", "goal.part.unreadable", "fast"),
        ("tps>=2,000", "goal.part.unreadable", "000"),
        ("tps>=2000 p99<=20ms", "goal.part.unreadable", "tps>=2000 p99<=20ms"),
        ("tps>=-1", "goal.part.unreadable", "tps>=-1"),
        ("tps>=1e3", "goal.part.unreadable", "tps>=1e3"),
        ("tps>=nan", "goal.part.unreadable", "tps>=nan"),
        ("p99<=20ms, iops>=3000", "goal.figure.unknown", "iops>=3000"),
        ("p99=20ms", "goal.operator.unknown", "p99=20ms"),
        ("p99=<20ms", "goal.operator.unknown", "p99=<20ms"),
        ("tps<=2000", "goal.direction.wrong", "tps<=2000"),
        ("p99>=20ms", "goal.direction.wrong", "p99>=20ms"),
        ("p99<=20", "goal.unit.missing", "p99<=20"),
        ("p99<=20 minutes", "goal.unit.unknown", "p99<=20 minutes"),
        ("tps>=2k", "goal.unit.unknown", "tps>=2k"),
        ("tps>=$2", "goal.unit.unknown", "tps>=$2"),
        ("price<=5ms", "goal.unit.unknown", "price<=5ms"),
        ("tps>=0", "goal.value.zero", "tps>=0"),
        ("p99<=" + "9" * 400 + "ms", "goal.part.unreadable", None),
        ("tps>=1," * LENGTH_MAX, "goal.too_long", None),
    ],
)
def test_a_bad_goal_is_refused_with_its_flag_and_its_part(text: str, code: str, part: str | None) -> None:
    with pytest.raises(InputError) as refused:
        parse_goal(text, "--goal")
    assert refused.value.code == code
    assert refused.value.data["flag"] == "--goal"
    assert refused.value.message.startswith("--goal: ")
    assert refused.value.remedy
    if part is not None:
        assert refused.value.data["part"] == part


def test_a_goal_is_read_in_linear_time() -> None:
    spent = []
    for length in (LENGTH_MAX // 2, LENGTH_MAX):
        began = time.process_time()
        for _ in range(300):
            for text in ("a" * length, "tps>=" + "1" * (length - 5), "1" * length, " " * (length - 1) + "x"):
                with pytest.raises(InputError):
                    read_goal(text)
        spent.append(time.process_time() - began)
    assert spent[1] < 3 * spent[0] + 0.05


@pytest.mark.parametrize(
    ("text", "headline", "measured"),
    [
        ("tps>=1, p99<=1ms, price<=1", "tps", True),
        ("tps>=1, nopm>=1", "nopm", True),
        ("nopm>=1", "tps", False),
        ("p99<=1ms", "seconds", False),
        ("tps>=1", "seconds", False),
        ("seconds<=1s, price<=$1", "seconds", True),
        ("response<=1ms, late<=1s", "response_ms", True),
        ("late<=1s", "tps", False),
        ("geomean<=1s", "geomean_s", True),
    ],
)
def test_a_figure_that_the_workload_does_not_measure_is_refused(text: str, headline: str, *, measured: bool) -> None:
    goal = read_goal(text)
    if measured:
        require_measured(goal, {headline})
        return
    with pytest.raises(InputError) as refused:
        require_measured(goal, {headline})
    assert refused.value.code == "goal.figure.unmeasured"
