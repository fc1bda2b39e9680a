"""Experiments with factors, several volumes, a real server: on the page, in the document, in the terminal."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pgdyno.analysis.compare import Comparison, summarise
from pgdyno.report import document, render, table
from pgdyno.report.page import html
from pgdyno.report.sweep import dependence_sentences, effect_rows
from pgdyno.report.terminal import WIDTH_MIN
from pgdyno.report.trust import not_verified

from ..analysis.synthetic import GP3, GP3_WAITS, IO2BX, REAL, Plan, factorial, make_experiment
from . import chromium
from .test_page import PAGE_BYTES_MAX, outline

WAL = "world.volumes.wal"


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """Sixteen arms of four factors."""
    return summarise(make_experiment(tmp_path_factory.mktemp("sixteen"), factorial(measure_s=20)))


@pytest.fixture(scope="module")
def sixteen_page(sixteen: Comparison, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their page."""
    page = tmp_path_factory.mktemp("page") / "report.html"
    page.write_text(html(sixteen))
    return page


@pytest.fixture(scope="module")
def two_volumes(tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    """One factor: with and without a volume for WAL."""
    log = replace(IO2BX, spec="io2bx:iops=4000", usd_per_month=50.0)
    levels = ("no wal volume", "io2bx:iops=4000")
    alone = replace(GP3, waits=GP3_WAITS, factors=((WAL, levels[0]),), name=levels[0])
    both = replace(alone, tps=1400, others=(("wal", log),), factors=((WAL, levels[1]),), name=f"wal {levels[1]}")
    plan = Plan(arms=(alone, both), measure_s=20, factors=((WAL, levels),))
    return summarise(make_experiment(tmp_path_factory.mktemp("two"), plan))


def plain(text: str) -> str:
    """The words of a page."""
    text = re.sub(r"<style>.*?</style>|<svg.*?</svg>", "", text, flags=re.DOTALL).replace("\u00a0", " ")
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)).replace("&#39;", "'")


def test_page_of_sixteen_arms_is_one_small_file(sixteen_page: Path) -> None:
    text = sixteen_page.read_text()
    assert len(text.encode()) < PAGE_BYTES_MAX
    result = outline(text)
    assert not {"script", "link", "iframe", "object", "img", "form"} & set(result.elements)
    assert len(result.ids) == len(set(result.ids))
    assert not re.search(r"\b(?:nan|NaN|None|undefined)\b", re.sub(r"<style>.*?</style>", "", text, flags=re.DOTALL))


def test_factors_come_before_arms(sixteen_page: Path) -> None:
    words = plain(sixteen_page.read_text())
    order = ["What each factor does", "Where one factor depends on another", "Summary", "How far to trust this"]
    places = [words.index(each) for each in order]
    assert places == sorted(places)
    assert re.search(r"wal on io2bx against no wal volume is 1\.[45]\d with gp3 and ", words)
    assert "its mean over the volume describes neither" in words


def test_figures_in_drawings_keep_their_digits(sixteen: Comparison, sixteen_page: Path) -> None:
    row = next(row for row in effect_rows(sixteen) if row.over == "PG 15.18")
    assert re.fullmatch(r"0\.\d{3}", row.ratio)
    assert f">{row.ratio}" in sixteen_page.read_text()


def test_effects_at_the_levels_of_another_factor_follow_their_effect(sixteen: Comparison) -> None:
    rows = effect_rows(sixteen)
    assert [row.at for row in rows] == ["", "no wal volume", "wal on io2bx", "", "gp3", "io2bx", "", ""]
    assert rows[-1].verdict == "not distinguishable"
    assert rows[5].verdict == "not distinguishable"
    assert len(dependence_sentences(sixteen)) == 2


@pytest.mark.needs_chromium
@pytest.mark.skipif(chromium.find() is None, reason="no Chromium is installed")
@pytest.mark.parametrize("width_px", [1280, 390])
def test_sixteen_arms_fit_the_window(sixteen_page: Path, width_px: int) -> None:
    from .test_browser import DRAWN, OUTSIDE, WIDTH

    executable = chromium.find()
    assert executable is not None
    first = "document.querySelector('.arms').closest('.scroll')"
    fits = f"{first}.scrollWidth <= {first}.clientWidth + 1"
    with chromium.Browser(executable) as browser:
        page = browser.open(sixteen_page, width_px, False, (WIDTH, OUTSIDE, DRAWN, fits))
    assert page.complaints == []
    assert page.values[WIDTH] <= width_px
    assert page.values[OUTSIDE] == ""
    assert all(len(scales) == 1 and 80 <= scales[0] <= 180 for scales in page.values[DRAWN])
    # The summary of sixteen arms is seen whole on a desktop; on a phone it scrolls inside its frame.
    assert page.values[fits] is (width_px == 1280)


@pytest.mark.parametrize("width", [100, 80, 60, WIDTH_MIN])
def test_table_fits_every_terminal(sixteen: Comparison, two_volumes: Comparison, width: int) -> None:
    for comparison in (sixteen, two_volumes):
        text = table(comparison, width=width)
        assert max(map(len, text.splitlines())) <= width, text
        assert "TPS" in text
        assert "valid" in text
    assert "effect of each factor on TPS" in table(sixteen, width=width)
    assert "depends: " in table(sixteen, width=width)


def test_document_of_factors(sixteen: Comparison) -> None:
    made = document(sixteen)
    assert [factor.name for factor in made.factors] == ["world.volume", WAL, "postgres.bin", "world.file_system"]
    assert made.arms[5].factors == {
        "world.volume": "gp3", WAL: "io2bx", "postgres.bin": "embedded", "world.file_system": "xfs",
    }  # fmt: skip
    assert {effect.factor: effect.distinguishable for effect in made.effects} == {
        "world.volume": True, WAL: True, "postgres.bin": True, "world.file_system": False,
    }  # fmt: skip
    of_wal = next(effect for effect in made.effects if effect.factor == WAL)
    assert (of_wal.level, of_wal.to, of_wal.pairs) == ("io2bx", "no wal volume", 24)
    assert [(at.factor, at.level) for at in of_wal.depends_on] == [
        ("world.volume", "gp3"),
        ("world.volume", "io2bx:iops=16000"),
    ]


def test_document_of_several_volumes(two_volumes: Comparison) -> None:
    alone, both = document(two_volumes).arms
    assert set(alone.volumes) == {"data"}
    assert set(both.volumes) == {"data", "wal"}
    assert both.volumes["wal"].spec == "io2bx:iops=4000"
    assert both.volumes["wal"].read_ms_p50 is None
    assert both.disk.iops == both.volumes["data"].iops
    assert both.wait_events[0].event == "DataFileRead"
    assert both.usd_per_month == 58.0
    assert document(two_volumes).effects == []


def test_page_of_several_volumes(two_volumes: Comparison) -> None:
    text = html(two_volumes)
    words = plain(text)
    for each in ("The volumes", "wal, io2bx", "Latency of the wal volume's requests", "wal volume: queue length"):
        assert each in words
    assert "What its sessions were doing" in words
    assert "IO: DataFileRead" in words
    assert "client backend: relation" in words
    # Of TPS, response, course, requests of either volume, waits, CPU.
    assert text.count("<figure>") == 7
    assert outline(text).elements.count("svg") == 7 * len(render.WIDTHS_PX)


def test_real_server_says_what_is_unknown(tmp_path: Path) -> None:
    comparison = summarise(make_experiment(tmp_path, Plan(arms=(REAL,), measure_s=20)))
    assert comparison.valid
    words = plain(html(comparison))
    assert "Not seen: wait events of other roles' sessions: the role is not in pg_monitor" in words
    assert "What could be seen" in words
    assert "db.example.org:5432" in words
    assert "The volume" not in words.replace("The volumes were", "")
    assert "Nothing of the server was changed" in words
    assert "unknown: the data directory's device" in table(comparison)
    made = document(comparison).arms[0]
    assert [row.what for row in made.unseen][1] == "the data directory's device"
    assert made.volumes == {}


def test_instance_larger_than_the_host_is_labelled(tmp_path: Path) -> None:
    arms = tuple(replace(arm, storage_only=True) for arm in (GP3, IO2BX))
    comparison = summarise(make_experiment(tmp_path, Plan(arms=arms, replicates=1, measure_s=20)))
    assert "Storage only. r6g.4xlarge (16 vCPUs) on 2 cores." in plain(html(comparison))
    assert "storage only: r6g.4xlarge (16 vCPUs) on 2 cores." in table(comparison)
    assert all(arm.storage_only for arm in document(comparison).arms)


def test_many_arms_of_one_factor_are_counted(tmp_path: Path) -> None:
    arms = tuple(replace(IO2BX, spec=f"io2bx:iops={n}000", tps=1000.0 + 300 * (n > 5)) for n in range(1, 9))
    comparison = summarise(make_experiment(tmp_path, Plan(arms=arms, measure_s=20)))
    assert comparison.verdict.startswith(
        "Of 7 arms 3 do more transactions than io2bx:iops=1000, 0 do fewer and 4 are not"
    )
    words = plain(html(comparison))
    assert "io2bx:iops=8000" in words
    assert "≈" in words


def test_reasons_of_many_runs_are_told_once(tmp_path: Path) -> None:
    plan = factorial(measure_s=20, replicates=1)
    late = tuple(replace(arm, late_share=0.5, late_by_us=50_000.0) for arm in plan.arms)
    text = table(summarise(make_experiment(tmp_path, replace(plan, arms=late))))
    assert text.count("invalid: ") == 1
    assert "lateness: 16 runs of 16 arms" in " ".join(text.split())


def test_runs_of_different_length_are_told_as_a_range(tmp_path: Path) -> None:
    """Runs of so many transactions end when these are done."""
    directory = make_experiment(tmp_path, Plan(measure_s=20, replicates=1))
    assert not_verified(summarise(directory))[-2].startswith("Each run measured 20 s. ")
    path = min((directory / "runs").glob("*/run.json"))
    record = json.loads(path.read_text())
    record["phases"][1]["end_ns"] -= 12_500_000_000
    path.write_text(json.dumps(record))
    assert not_verified(summarise(directory))[-2].startswith("Each run measured 7.5 to 20 s. ")


@pytest.mark.drawn
def test_a_run_directory_from_elsewhere_reports_the_same(two_volumes: Comparison, tmp_path: Path) -> None:
    """Copied to another path, read by a process that has no engine, no root's tools, and another folder."""
    here = two_volumes.paths[0]
    there = tmp_path / "another place" / here.name
    shutil.copytree(here, there)
    environment = {
        "PATH": "/nonexistent", "PGDYNO_ENGINE": "/nonexistent", "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(tmp_path),
    }  # fmt: skip
    command = [sys.executable, "-m", "pgdyno", "report", str(there), "--json", "--output", str(tmp_path / "page.html")]
    done = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert {**json.loads(done.stdout), "report": None} == json.loads(document(two_volumes).model_dump_json())
    assert (tmp_path / "page.html").read_text() == html(two_volumes)
