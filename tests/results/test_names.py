"""Names of experiments and runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.results.names import experiment_id, identity_hash, results_root, run_name, slug

if TYPE_CHECKING:
    import pytest


def test_an_experiments_id_sorts_by_time_and_ends_in_its_identity() -> None:
    assert experiment_id("compare", "abcdef0123", 1_795_265_100 * 10**9) == "20261121T124500Z-compare-abcdef"


def test_a_runs_name_says_position_arm_and_block() -> None:
    assert run_name(3, "gp3:size=100GiB,iops=6000", 2) == "03-gp3-size-100gib-iops-6000-r2"


@given(st.text())
def test_a_slug_is_always_a_files_name(text: str) -> None:
    made = slug(text)
    assert 0 < len(made) <= 48
    assert made not in (".", "..")
    assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-")


@given(st.dictionaries(st.text(max_size=3), st.integers(), max_size=4))
def test_identity_does_not_depend_on_the_order_of_keys(facts: dict[str, int]) -> None:
    assert identity_hash(facts) == identity_hash(dict(reversed(facts.items())))
    assert identity_hash(facts) != identity_hash({"facts": facts})


def test_the_flag_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDYNO_RESULTS", "/variable")
    assert results_root(Path("/flag")) == Path("/flag")
    assert results_root() == Path("/variable")
    monkeypatch.delenv("PGDYNO_RESULTS")
    assert results_root() == Path("results")


def test_a_name_that_is_not_ascii_leaves_no_odd_marks_in_a_slug() -> None:
    assert slug("twin ü.toml") == "twin-u.toml"
    assert slug("Großes · Élan") == "groes-elan"
    assert slug("日本") == "arm"
    assert slug("scale 1.5") == "scale-1.5"
