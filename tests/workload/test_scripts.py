"""Scripts of the user's: their weights and where they are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.kinds.pgbench import ScriptFile, read_script, split_weight

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a.sql", ("a.sql", 1)),
        ("a.sql@9", ("a.sql", 9)),
        ("folder/a@b.sql@3", ("folder/a@b.sql", 3)),
    ],
)
def test_a_weight_stands_after_the_last_sign(text: str, parts: tuple[str, int]) -> None:
    assert split_weight(text) == parts


@pytest.mark.parametrize("text", ["a.sql@0", "a.sql@x", "a.sql@", "@3", "a.sql@1.5", "a.sql@-1", "a.sql@1000001"])
def test_a_weight_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="not a whole number"):
        split_weight(text)


def test_a_script_is_read_beside_the_experiment(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "a.sql").write_text("SELECT 1;\n")
    file = ScriptFile(**read_script("scripts/a.sql@4", tmp_path))
    assert (file.name, file.text, file.weight) == ("scripts/a.sql", "SELECT 1;\n", 4)
    whole = tmp_path / "scripts" / "a.sql"
    assert read_script(str(whole), tmp_path / "elsewhere")["text"] == "SELECT 1;\n"


def test_a_script_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent\.sql cannot be read: No such file"):
        read_script("absent.sql", tmp_path)
    (tmp_path / "latin.sql").write_bytes(b"SELECT '\xe9';")
    with pytest.raises(InputError, match="not UTF-8"):
        read_script("latin.sql", tmp_path)
