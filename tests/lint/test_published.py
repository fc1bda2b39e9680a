"""Rules of published figures: each is broken once, and the whole file breaks none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.published.conftest import GOOD, Write, write
from tools.lint import published
from tools.reference import published as reference

__all__ = ["write"]

AGAIN = """
[[figure]]
name = "again"
measures = "Transactions  per second"
of = "A"
value = 100
unit = "TPS"
at = "Conclusion"
"""


def _found(path: Path) -> list[str]:
    return [str(finding) for finding in published.check(path.parents[2])]


def test_a_file_that_keeps_the_rules_has_no_finding(write: Write) -> None:
    assert _found(write()) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('at = "Results"\n', "", "figure[1].at: Field required"),
        ('unit = "TPS"', 'unit = "bogoTPS"', "`bogoTPS` is not a known unit"),
        ('unit = "GiB"', 'unit = "gibi"', "`gibi` is not a known unit"),
        ("[[table]]", f"{AGAIN}[[table]]", "figure stands twice: transactions per second of a; remove one"),
        (
            '["1-1", 4,',
            '["1-1", 2,',
            "figure stands twice: statements per second of the document at table 1-1, vcpus 2",
        ),
        ('name = "tps_b"', 'name = "tps_a"', "the name `tps_a` is used twice"),
        ("low = 0.125", "low = 32", "unstated `memory`: low 32 is not below high 32"),
        ("low = 0.125\n", "", "unstated `memory` needs `low`, `high` and `unit`, or `choices`"),
        (
            "low = 0.125",
            'choices = ["a", "b"]\nlow = 0.125',
            "unstated `memory` needs two `choices` or more, and no `low`",
        ),
        ('why = "the default, and a quarter"', 'why = ""', "unstated[1].why: String should have at least 1 character"),
        ("value = 208\n", "value = 215\n", "`b to a` comes to 2.15 and not to 2.08: say why in `because`"),
        ('stated = "ratio"', 'stated = "ratio"\nbecause = "x"', "`b to a` adds up: remove its `because`"),
        ('stated = "ratio"', 'stated = "nothing"', "`b to a`: `nothing` is not a figure of this document"),
        ('high = "tps_b"', 'high = "tps_c"', "`b to a`: `tps_c` is neither a figure nor a column"),
        ("stated = 20\n", "stated = 18\n", "`statements of a transaction` comes to 20 and not to 18"),
    ],
)
def test_each_rule_finds_what_breaks_it(write: Write, old: str, new: str, said: str) -> None:
    texts = _found(write((old, new)))
    assert any(said in text for text in texts), texts
    assert all(text.startswith("catalog/published/post.toml: ") for text in texts)


ANSWERED = (
    'unanswered = "nobody ran it"',
    """[comparison.answer]
experiment = "trial"
metric = "tps"
high = { "world.volume" = "io2bx" }
low = { "world.volume" = "gp3" }
[[comparison.answer.varied]]
what = "memory"
choice = "32 GiB"
experiment = "trial"
high = { "world.volume" = "io2bx", "workload.clients" = "8" }
low = { "world.volume" = "gp3", "workload.clients" = "8" }
[[order]]
name = "both"
steps = ["b to a", "b to a"]
[[run]]
experiment = "trial\"""",
)
TRIAL = """
schema_version = 1
[factors]
"world.volume" = ["gp3", "io2bx"]
"workload.clients" = [4, 8]
"""


def _answered(write: Write, *changes: tuple[str, str]) -> list[str]:
    path = write(ANSWERED, *changes)
    trial = path.parents[2] / "experiments" / "trial.toml"
    trial.parent.mkdir()
    trial.write_text(TRIAL)
    return _found(path)


def test_an_answer_that_an_experiment_file_can_give_has_no_finding(write: Write) -> None:
    assert _answered(write) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('metric = "tps"', 'metric = "speed"', "`speed` is not a metric of runs"),
        ('"world.volume" = "io2bx" }', '"world.volume" = "io3" }', "trial.toml has no arm {'world.volume': 'io3'}"),
        ('"workload.clients" = "8" }', '"workload.scale" = "8" }', "trial.toml has no arm {'world.volume': 'io2bx',"),
        ('what = "memory"\nchoice', 'what = "luck"\nchoice', "`luck` is varied, and is not among what the document"),
        ('steps = ["b to a"', 'steps = ["c to a"', "order `both`: there is no comparison `c to a`"),
        ('[[run]]\nexperiment = "trial"', "", "experiment `trial` is not run: add a `run`"),
        ('[[run]]\nexperiment = "trial"', '[[run]]\nexperiment = "other"', "experiment `other` answers nothing"),
        ('answer]\nexperiment = "trial"', 'answer]\nexperiment = "other"', "other.toml cannot be read"),
    ],
)
def test_an_answer_that_no_experiment_file_can_give_is_found(write: Write, old: str, new: str, said: str) -> None:
    texts = _answered(write, (old, new))
    assert any(said in text for text in texts), texts


CHARTED = (
    "[[order]]",
    """[[chart]]
name = "TPS by vCPUs"
column = "cells_tps"
x = "vcpus"
x_title = "vCPUs"
experiment = "trial"
metric = "tps"
factor = "workload.clients"
level = "{vcpus}"
[[chart.line]]
name = "one"
where = { table = "1-1" }
[[order]]""",
)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"{vcpus}"', '"{vcpus} vCPUs"', "chart `TPS by vCPUs`: trial.toml has no arm for any point of `one`"),
        ('"{vcpus}"', '"{cores}"', "chart `TPS by vCPUs`: the table has no such column, axis or number"),
        ('"cells_tps"', '"cells_tpm"', "chart `TPS by vCPUs`: the table has no such column, axis or number"),
        ('"1-1" }\n[[ord', '"1-2" }\n[[ord', "chart `TPS by vCPUs`: `one` has fewer than 2 rows"),
        ('metric = "tps"\nfactor', 'metric = "speed"\nfactor', "`speed` is not a metric of runs"),
    ],
)
def test_a_chart_that_nothing_answers_is_found(write: Write, old: str, new: str, said: str) -> None:
    texts = _answered(write, CHARTED, (old, new))
    assert any(said in text for text in texts), texts


def test_a_chart_with_an_arm_for_a_point_has_no_finding(write: Write) -> None:
    assert _answered(write, CHARTED) == []


def test_a_comparison_without_an_answer_says_why(write: Write) -> None:
    assert _found(write(('unanswered = "nobody ran it"\n', ""))) == [
        "catalog/published/post.toml: `b to a` needs `answer`, `offer`, or in `unanswered` why there is neither"
    ]


def test_a_document_with_two_files_is_found(write: Write) -> None:
    path = write()
    path.with_name("copy.toml").write_text(GOOD.replace('name = "post"', 'name = "copy"', 1))
    assert [text for text in _found(path) if "`A post` has two files: remove one" in text] == _found(path)
    assert len(_found(path)) == 2


def test_another_figure_changes_the_page(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write()
    monkeypatch.setattr(reference, "FOLDER", path.parent)
    assert "| b to a | 208 | 100 | 2.08 | 2.08 |" in reference.page()
    write(("value = 208\n", "value = 215\n"))
    assert "| b to a | 215 | 100 | 2.15 | 2.08 |" in reference.page()
