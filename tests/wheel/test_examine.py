"""The examination of a wheel refuses each thing that would not work elsewhere, and a real one for what it is."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from pgdyno import _build
from pgdyno.base import engine
from tests.wheel.conftest import Packed
from tools.wheel import GLIBC, examine, licences, man

RIGHT = examine.Findings(Path("x.whl"), 8 << 20, (2, 28), ("libc.so.6", "libgcc_s.so.1"), "abc", "\na 1.0: MIT\n")
CRATES = (licences.Crate("a", "1.0", "MIT", Path()),)

ELF = """\
Version needs section '.gnu.version_r' contains 2 entries:
  000000: Version: 1  File: libgcc_s.so.1  Cnt: 1
  0x0010:   Name: GCC_3.0  Flags: none  Version: 9
  0x0020: Version: 1  File: libc.so.6  Cnt: 3
  0x0030:   Name: GLIBC_2.9  Flags: none  Version: 8
  0x0040:   Name: GLIBC_2.34  Flags: none  Version: 5
  0x0050:   Name: GLIBC_2.2.5  Flags: none  Version: 2
"""


def test_the_newest_version_is_found_by_number() -> None:
    assert examine.newest_glibc(ELF) == (2, 34)
    assert examine.newest_glibc("") == (0, 0)


def test_one_that_is_right_has_no_problem() -> None:
    assert RIGHT.problems("abc", CRATES) == []


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ({"glibc": (2, 34)}, "asks for GLIBC_2.34, and the file's name promises 2.28"),
        ({"needed": ("libc.so.6", "liblzma.so.5")}, "needs liblzma.so.5"),
        ({"build_hash": "def"}, "other sources (def) than these (abc)"),
        ({"size_bytes": 41 << 20}, "is the engine stripped?"),
        ({"licences": "\na 1.1: MIT\n"}, "the licences of a 1.0 are missing"),
    ],
)
def test_what_would_not_work_elsewhere_is_refused(broken: dict[str, Any], said: str) -> None:
    [problem] = dataclasses.replace(RIGHT, **broken).problems("abc", CRATES)
    assert said in problem


def test_a_wheel_around_the_engine_of_a_plain_build_is_refused(packed: Packed, repository: Path) -> None:
    result = examine.examine(packed.wheel)
    if result.glibc <= GLIBC:
        pytest.skip(f"this machine's own C library asks for no more than {GLIBC}")
    expected = _build.hash_sources(repository)
    problems = result.problems(result.build_hash, licences.crates(repository))
    assert len(problems) == 1, problems
    assert "GLIBC_" in problems[0]
    assert result.problems("0" * 16, ())[-1].endswith("than these (0000000000000000)")
    if engine.facts().matches:
        assert result.build_hash == expected


def test_the_symbols_are_in_a_file_beside_it(packed: Packed) -> None:
    sections = subprocess.run(["readelf", "-SW", packed.debug], capture_output=True, text=True, check=True).stdout
    assert ".debug_line" in sections and ".symtab" in sections
    assert packed.debug.stat().st_size > packed.wheel.stat().st_size


def test_manual_pages_are_right_for_groff() -> None:
    pages = man.pages()
    assert {"pgdyno.1", "pgdyno-compare.1", "pgdyno-volume.1"} <= set(pages)
    assert "pgdyno volume attach" in pages["pgdyno-volume.1"]
    try:
        for name, text in pages.items():
            done = subprocess.run(
                ["groff", "-man", "-ww", "-z"], input=text, capture_output=True, text=True, check=True
            )
            assert done.stderr == "", name
    except FileNotFoundError:
        pytest.skip("needs groff (apt install groff)")
