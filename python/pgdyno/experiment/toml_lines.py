"""On which line of a TOML text each key and each element of an array stands.

The standard library's parser does not say. This reads a text that parser has accepted already, so it need not judge:
it only finds where keys begin and where values end.
"""

from __future__ import annotations

import re
import tomllib

Path = tuple[str | int, ...]

_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_SPACE = re.compile(r"[ \t]*")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'',
    re.DOTALL,
)
_PLAIN = re.compile(r"[^,\]}\n#]+")
"""A number, a truth value, a date."""


def key_lines(text: str) -> dict[Path, int]:
    """Line (from 1) by path: ``("factors", "world.volume", 1)`` is the second element of that array."""
    return _Scan(text).run()


class _Scan:
    """One pass over a text; ``at`` is the place of the next character."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._line, self._counted = 1, 0
        """The line of the place up to which ends of lines have been counted."""
        self.lines: dict[Path, int] = {}
        self._tables: dict[Path, int] = {}
        """Arrays of tables -> number of their tables that have begun."""

    def run(self) -> dict[Path, int]:
        table: Path = ()
        while self._skip(_BLANK) < len(self.text):
            if self.text[self.at] == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.lines

    def _skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        assert match is not None
        self.at = match.end()
        return self.at

    def _take(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        return match[0]

    def _note(self, path: Path) -> None:
        """A path's first line counts; its parents begin there too if nothing named them before."""
        self._line += self.text.count("\n", self._counted, self.at)
        self._counted = self.at
        line = self._line
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _header(self) -> Path:
        many = self.text.startswith("[[", self.at)
        self.at += 2 if many else 1
        self._skip(_SPACE)
        path = self._key(())
        if many:
            number = self._tables[path] = self._tables.get(path, -1) + 1
            path = (*path, number)
            self._note(path)
        self.at = self.text.index("]", self.at) + (2 if many else 1)
        return path

    def _pair(self, table: Path) -> None:
        path = self._key(table)
        self.at = self.text.index("=", self.at) + 1
        self._skip(_SPACE)
        self._value(path)

    def _key(self, table: Path) -> Path:
        """A key, which may be dotted and quoted; noted where it begins."""
        path, begin = table, self.at
        while True:
            self._skip(_SPACE)
            part = self._take(_BARE)
            path = (*path, part if part is not None else self._quoted())
            end = self._skip(_SPACE)
            if not self.text.startswith(".", end):
                break
            self.at += 1
        self.at = begin
        self._note(path)
        self.at = end
        return path

    def _quoted(self) -> str:
        literal = self._take(_STRING)
        assert literal is not None
        value = tomllib.loads(f"key = {literal}")["key"]
        assert isinstance(value, str)
        return value

    def _value(self, path: Path) -> None:
        if self.text[self.at] == "[":
            self._elements(path)
        elif self.text[self.at] == "{":
            self._inline_table(path)
        elif self._take(_STRING) is None:
            self._take(_PLAIN)

    def _elements(self, path: Path) -> None:
        self.at += 1
        number = 0
        while self.text[self._skip(_BLANK)] != "]":
            self._note((*path, number))
            self._value((*path, number))
            if self.text[self._skip(_BLANK)] == ",":
                self.at += 1
            number += 1
        self.at += 1

    def _inline_table(self, path: Path) -> None:
        self.at += 1
        while self.text[self._skip(_BLANK)] != "}":
            self._pair(path)
            if self.text[self._skip(_BLANK)] == ",":
                self.at += 1
        self.at += 1
