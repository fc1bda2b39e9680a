"""The record on installing, from made-up parts: what its claims say, and its page."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tools.install import claims, image, page
from tools.install.measure import PARTS, SYSTEMS
from tools.install.record import Done, Image, Installed, Record, Sources, Step, Verdict, Wheel


def step(name: str = "version", code: int = 0) -> Step:
    text = "" if code == 0 else "it broke"
    return Step.of(name, "pgdyno x | y", Done(code, "", text, 1.0))


def installed(suite: str, way: str, **changed: Any) -> Installed:
    facts: dict[str, Any] = {"release": "Debian", "glibc": "2.41", "python": "Python 3.13.5", "steps": [step()]}
    facts |= {"help_cpu_s": 0.1, "left": [], "sizes_mb": {"pyarrow": 176.0, "click": 0.5}}
    return Installed(suite=suite, way=way, **(facts | changed))


LOAD = "0.1 to 2.0"
WHEEL = Wheel(
    name="x.whl", seconds=300.0, cpu_s=500.0, load=LOAD, size_bytes=5 << 20, glibc="2.28", libraries=["libc.so.6"]
)
IMAGE = Image(built_by="b", run_by="r", base="trixie", seconds=100.0, load=LOAD, size_mb=870.0, steps=[step()])
SOURCES = Sources(name="x.tar.gz", size_bytes=1, build_s=150.0, tests="300 passed in 60 s", holds=True)


def record(**changed: Any) -> Record:
    """A whole record; every claim holds unless a part is changed."""
    verdict = Verdict(install_s=90.0, demo_s=250.0, load=LOAD)
    parts: dict[str, Any] = {
        "wheel": WHEEL,
        "installed": [installed(*item, verdict=verdict if item == SYSTEMS[0] else None) for item in SYSTEMS],
        "image": IMAGE,
        "sources": SOURCES,
    }
    parts |= {"kernel": "6.18", "machine": "x86_64", "build_hash": "0123456789abcdef", "commit": "0123456"}
    return Record(begin=datetime(2026, 11, 25, tzinfo=UTC), **(parts | changed))


def test_a_whole_record_has_every_part_and_every_claim_holds() -> None:
    result = record()
    assert all(result.has(part) for part in PARTS)
    assert tuple(item.name for item in claims.judge(result)) == claims.NAMES
    assert [str(item) for item in claims.judge(result) if not item.holds] == []


@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({"wheel": WHEEL.model_copy(update={"glibc": "2.34"})}, "wheel: symbols"),
        ({"wheel": WHEEL.model_copy(update={"seconds": 361.0})}, "wheel: time"),
        ({"installed": [installed(*SYSTEMS[1], steps=[step(), step("help", 1)])]}, "trixie uv"),
        ({"installed": [installed(*SYSTEMS[1], steps=[])]}, "trixie uv"),
        (
            {"installed": [installed(*SYSTEMS[0], verdict=Verdict(install_s=100, demo_s=261, load=LOAD))]},
            "first verdict",
        ),
        ({"installed": [installed(*SYSTEMS[0], help_cpu_s=0.21)]}, "help"),
        ({"installed": [installed(*SYSTEMS[0], left=["/run/pgdyno"])]}, "nothing stays"),
        ({"image": IMAGE.model_copy(update={"size_mb": 901.0})}, "image: size"),
        ({"image": IMAGE.model_copy(update={"steps": [step(code=3)]})}, "image: runs"),
        ({"sources": SOURCES.model_copy(update={"holds": False})}, "source distribution"),
    ],
)
def test_what_breaks_a_claim_is_named(changed: dict[str, Any], broken: str) -> None:
    assert [item.name for item in claims.judge(record(**changed)) if not item.holds] == [broken]


def test_the_page_has_claims_systems_and_commands() -> None:
    result = record(installed=[installed("bullseye", "uv", not_had="no Python 3.11", steps=[step("engine", 1)])])
    text = page.render(result, claims.judge(result))
    assert "not installed: no Python 3.11" in text
    assert "**Not measured: trixie pipx, trixie uv, bookworm pipx, sid uv.**" in text
    assert "| engine | `pgdyno x \\| y` | 1 | **no** |" in text
    assert "| all others together | 0.5 |" in text


def test_a_step_holds_by_its_code_and_by_what_it_says() -> None:
    done = Done(3, "it needs\n  root", "", 1.04)
    assert Step.of("x", "y", done, codes=(3,), has=("needs root",)).holds
    assert Step.of("x", "y", done).said == "it needs root"
    lacks = Step.of("x", "y", done, codes=(3,), has=("sudo",))
    assert (lacks.holds, lacks.said, lacks.seconds) == (False, "lacks sudo: it needs root", 1.0)


def test_each_flag_of_the_guide_that_the_bench_omits_is_in_its_command() -> None:
    flags = image.documented()
    for name, left, _ in image.without(flags):
        assert left != flags, name
