"""Figures that pages and experiment files repeat from the documents are those of catalog/published."""

from __future__ import annotations

import re
from decimal import Decimal
from pathlib import Path

import pytest

from pgdyno.published import read_document

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs" / "guide" / "published.md").read_text(encoding="utf-8")


def _figures(name: str) -> dict[str, Decimal]:
    return {
        figure.name: figure.value for figure in read_document(ROOT / "catalog" / "published" / f"{name}.toml").figure
    }


def _in_words(seconds: Decimal) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


@pytest.mark.parametrize("volume", ["gp2", "gp3", "io1", "io2"])
def test_the_guide_has_the_tps_of_the_whitepaper(volume: str) -> None:
    [row] = re.findall(rf"^\| {volume}[ ,].*\| ([\d,]+) \|$", GUIDE, re.MULTILINE)
    assert Decimal(row.replace(",", "")) == _figures("whitepaper")[f"tps_{volume}"]


def test_the_guide_has_the_times_of_the_bulk_load_post() -> None:
    post = _figures("bulk-load")
    times = {name: _in_words(post[name]) for name in ("baseline", "sequential", "parallel", "untuned", "tuned")}
    assert f"| {times['baseline']} instead of about 1 min |" in GUIDE
    assert f"| {times['parallel']} instead of {times['sequential']} |" in GUIDE
    assert f"| {times['tuned']} instead of {times['untuned']}," in GUIDE


def test_the_experiment_file_of_the_whitepaper_has_its_tps() -> None:
    text = (ROOT / "experiments" / "whitepaper-four-volumes.toml").read_text(encoding="utf-8")
    figures = _figures("whitepaper")
    gp2, gp3, io1, io2 = (f"{figures[f'tps_{volume}']:,}" for volume in ("gp2", "gp3", "io1", "io2"))
    assert f"It has {gp2}, {gp3}, {io1} and {io2} TPS." in text
