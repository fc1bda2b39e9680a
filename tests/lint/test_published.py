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
    found = _found(write((old, new)))
    assert any(said in one for one in found), found
    assert all(one.startswith("catalog/published/post.toml: ") for one in found)


def test_a_document_with_two_files_is_found(write: Write) -> None:
    path = write()
    path.with_name("copy.toml").write_text(GOOD.replace('name = "post"', 'name = "copy"', 1))
    assert [one for one in _found(path) if "`A post` has two files: remove one" in one] == _found(path)
    assert len(_found(path)) == 2


def test_another_figure_changes_the_page(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write()
    monkeypatch.setattr(reference, "FOLDER", path.parent)
    assert "| b to a | 208 | 100 | 2.08 | 2.08 |" in reference.page()
    write(("value = 208\n", "value = 215\n"))
    assert "| b to a | 215 | 100 | 2.15 | 2.08 |" in reference.page()
