"""The tests that the changelog names as evidence are there."""

from __future__ import annotations

import re
from pathlib import Path

_NAMED = re.compile(
    r"(?P<file>\btests/[\w/]+\.py)|(?P<rust>\b[\w/]+\.rs\b)(?:::(?P<rust_name>\w+))?"
    r"|\b(?P<name>test_\w+)\b(?!\.py)(?:\[(?P<case>[^\]]+)\])?"
)


def unfounded(line: str, root: Path) -> list[str]:
    """What a line names that the repository has not: files, tests of the file that was named last, their cases."""
    results, text = [], ""
    for named in _NAMED.finditer(line):
        if named["file"]:
            path = root / named["file"]
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            results += [] if path.is_file() else [named["file"]]
        elif named["rust"]:
            sources = [path.read_text(encoding="utf-8") for path in (root / "crates").rglob(Path(named["rust"]).name)]
            defined = f"fn {named['rust_name']}(" if named["rust_name"] else ""
            results += [] if any(defined in source for source in sources) else [named[0]]
        else:
            is_there = re.search(rf"^\s*def {named['name']}\(", text, re.MULTILINE) is not None
            has_case = named["case"] is None or f'"{named["case"]}"' in text
            results += [] if is_there and has_case else [named[0]]
    return results


def test_tests_that_the_changelog_names_are_there(repository: Path) -> None:
    lines = (repository / "CHANGELOG.md").read_text(encoding="utf-8").splitlines()
    assert sum(len(_NAMED.findall(line)) for line in lines) > 100, "the pattern does not find what is named"
    texts = {number: missing for number, line in enumerate(lines, 1) if (missing := unfounded(line, repository))}
    assert not texts, f"line of CHANGELOG.md -> what it names and is not there: {texts}"


def test_what_is_not_there_is_found(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_a.py").write_text('def test_one(case):\n    "small"\n\n\ndef test_two():\n    pass\n')
    (tmp_path / "crates/x/src").mkdir(parents=True)
    (tmp_path / "crates/x/src/a.rs").write_text("fn whole() {}\n")
    line = "tests/test_a.py::test_one[small], ::test_two; a.rs::whole; crates/x/src/a.rs"
    assert unfounded(line, tmp_path) == []
    line = "tests/test_a.py::test_one[large], ::test_tw; a.rs::part; b.rs; tests/test_b.py::test_one"
    assert unfounded(line, tmp_path) == [
        "test_one[large]",
        "test_tw",
        "a.rs::part",
        "b.rs",
        "tests/test_b.py",
        "test_one",
    ]
