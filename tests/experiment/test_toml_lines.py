"""Where keys stand, whatever notation the file uses."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, Any

from hypothesis import given
from hypothesis import strategies as st

from pgdyno.experiment.origin import key_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

TEXT = '''\
# a comment with key = "value"
top = 1
[world]
volumes = { data = "gp3", "tablespace.fast" = "io2bx" }  # trailing = "comment"

dotted.key = """
not_a_key = 1
"""
'single quoted' = [
  "a", # first
  ["b",
   { deep = 2 }],
]
[factors]
"world.volume" = ["gp3",
  "io2bx"]
[[many]]
one = 1
[[many]]
one = 1979-05-27 07:32:00
'''


def test_every_key_and_element_is_found_on_its_line() -> None:
    lines = key_lines(TEXT)
    assert lines["top",] == 2
    assert lines["world",] == 3
    assert lines["world", "volumes", "tablespace.fast"] == 4
    assert lines["world", "dotted", "key"] == 6
    assert lines["world", "single quoted"] == 9
    assert lines["world", "single quoted", 1] == 11
    assert lines["world", "single quoted", 1, 1, "deep"] == 12
    assert lines["factors", "world.volume", 1] == 16
    assert lines["many", 0, "one"] == 18
    assert lines["many", 1, "one"] == 20


def test_the_paths_are_those_of_the_parser() -> None:
    assert set(key_lines(TEXT)) == set(_paths(tomllib.loads(TEXT)))


def _paths(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    parts: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        parts = list(value.items())
    elif isinstance(value, list):
        parts = list(enumerate(value))
    for part, inner in parts:
        yield (*path, part)
        yield from _paths(inner, (*path, part))


_STRINGS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
_VALUES = st.recursive(
    st.integers(-99, 99) | st.booleans() | _STRINGS, lambda inner: st.lists(inner, max_size=4), max_leaves=8
)


@given(st.dictionaries(_STRINGS, st.tuples(_VALUES, st.integers(0, 3)), max_size=6))
def test_any_file_of_keys_is_read(found: dict[str, tuple[Any, int]]) -> None:
    text, expected = "", {}
    for key, (value, blank_lines) in found.items():
        text += "\n" * blank_lines
        expected[key] = text.count("\n") + 1
        text += f"{_quoted(key)} = {_toml(value)} # = [ {{\n"
    assert tomllib.loads(text) == {key: value for key, (value, _) in found.items()}
    lines = key_lines(text)
    assert {path[0]: line for path, line in lines.items() if len(path) == 1} == expected


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(_toml(inner) for inner in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    return _quoted(value) if isinstance(value, str) else str(value)
