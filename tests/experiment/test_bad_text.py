"""Texts that a terminal or a drawing would stumble over, levels that cannot be told apart, and too many arms."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import InputError
from pgdyno.experiment.arm import ARMS_MAX
from pgdyno.experiment.factors import level_texts
from pgdyno.experiment.origin import control_characters, key_lines
from tests.experiment.documents import FAKE, written

if TYPE_CHECKING:
    from pathlib import Path

_VOLUMES = '"world.volume" = ["gp3", "io2bx"]'


@pytest.mark.parametrize(
    ("old", "new", "key", "character"),
    [
        (_VOLUMES, 'cell = [{ name = "a\\u001bb", workload.clients = 1 }]', "factors.cell[1].name", "U+001B"),
        (_VOLUMES, 'cell = [{ name = "a\\u0000b", workload.clients = 1 }]', "factors.cell[1].name", "U+0000"),
        ("schema_version = 1", 'schema_version = 1\ntitle = "a\\u009bb"', "title", "U+009B"),
        ("schema_version = 1", 'schema_version = 1\ntitle = "a\\u202eb"', "title", "U+202E"),
        (_VOLUMES, '"postgres.parameters.x\\u001b" = ["a", "b"]', 'factors."postgres.parameters.x\x1b"', "U+001B"),
        ("[factors]", '[postgres.parameters]\na = "\\u0007"\n[factors]', "postgres.parameters.a", "U+0007"),
    ],
)
def test_a_control_character_in_a_file_is_refused_where_it_stands(
    old: str, new: str, key: str, character: str, tmp_path: Path
) -> None:
    text = FAKE.replace(old, new, 1)
    with pytest.raises(InputError) as refused:
        written(tmp_path, text)
    assert refused.value.code == "experiment.text.control"
    line = text[: text.index(new) + len(new)].count("\n") + 1 - ("\n[factors]" in new)
    assert refused.value.data == {"key": key, "line": line, "character": character}


def test_a_control_character_of_an_assignment_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        written(tmp_path, FAKE, 'postgres.parameters.a="\\u001b"')
    assert refused.value.code == "experiment.text.control"
    assert "line" not in refused.value.data


def test_the_text_of_a_script_may_have_any_character() -> None:
    script = {"name": "own.sql", "text": "SELECT 1;\f\nSELECT 2;\r\n"}
    assert list(control_characters({"workload": {"files": [script]}})) == []
    named = script | {"name": "own\x1b.sql"}
    assert list(control_characters({"workload": {"files": [named]}})) == [
        (("workload", "files", 0, "name"), "own\x1b.sql")
    ]


def test_two_levels_of_one_name_are_refused(tmp_path: Path) -> None:
    levels = 'cell = [{ name = "a", workload.clients = 1 }, { name = "a", workload.clients = 2 }]'
    with pytest.raises(InputError) as refused:
        written(tmp_path, FAKE.replace(_VOLUMES, levels))
    assert refused.value.code == "experiment.level.same_name"
    assert (refused.value.data["key"], refused.value.data["name"]) == ("factors.cell[2]", "a")


def test_lists_and_tables_that_would_be_called_alike_are_numbered() -> None:
    scripts = [[{"name": "q.sql", "text": text}] for text in ("SELECT 1;", "SELECT 2;", "SELECT 1;")]
    assert level_texts("workload.files", scripts) == ("q.sql", "q.sql (2)", "q.sql")
    assert level_texts("postgres.bin", ["/opt/pg15/bin", "/usr/pg15/bin"]) == ("/opt/pg15/bin", "/usr/pg15/bin")


def test_a_number_in_quotes_is_refused_and_a_quantity_is_not(tmp_path: Path) -> None:
    with pytest.raises(InputError) as refused:
        written(tmp_path, FAKE.replace("clients = 4", 'clients = "4"'))
    assert refused.value.data == {"key": "workload.clients", "line": 9}
    assert written(tmp_path, FAKE.replace('"5s"', '"6s"')).arms[0].workload.phases_s[1] == 6


def test_arms_have_a_bound_and_one_more_is_refused_at_once(tmp_path: Path) -> None:
    million = ", ".join(map(str, range(1, 1001)))
    levels = f'"workload.clients" = [{million}]\n"workload.scale" = [{million}]'
    began = time.process_time()
    with pytest.raises(InputError) as refused:
        written(tmp_path, FAKE.replace(_VOLUMES, levels))
    assert refused.value.code == "experiment.arms.too_many"
    assert refused.value.data == {"key": "factors", "line": 13, "arms": 1_000_000, "arms_max": ARMS_MAX}
    assert time.process_time() - began < 5


def test_lines_of_keys_are_found_in_linear_time() -> None:
    def seconds(count: int) -> float:
        text = "".join(f"key{number} = {number}\n" for number in range(count))
        took = []
        for _ in range(3):
            began = time.process_time()
            assert key_lines(text)["key7",] == 8
            took.append(time.process_time() - began)
        return min(took)

    assert seconds(80_000) < 3 * seconds(40_000)
