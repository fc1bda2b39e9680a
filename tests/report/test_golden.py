"""What every writer says of a fixed set of results, held against the text that is kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from .golden import CASES, FOLDER, texts


@pytest.mark.parametrize("name", CASES)
def test_a_report_is_as_it_was(name: str, tmp_path: Path) -> None:
    made = texts(name, tmp_path)
    kept = {path.name: path.read_text() for path in FOLDER.glob(f"{name}.*.txt")}
    assert sorted(made) == sorted(kept)
    for file, text in made.items():
        assert text == kept[file], f"{file}: if it is meant, run `python -m tests.report.golden`"
