"""Text as SQL writes it: names, strings, lists. Nothing reaches a statement unquoted."""

from __future__ import annotations

from collections.abc import Iterable


def quoted(name: str) -> str:
    """A name."""
    return '"' + name.replace('"', '""') + '"'


def qualified(schema: str, name: str) -> str:
    """A name with its schema."""
    return f"{quoted(schema)}.{quoted(name)}"


def literal(value: str) -> str:
    """A string, whatever ``standard_conforming_strings`` says."""
    doubled = value.replace("'", "''")
    return f" E'{doubled}'".replace("\\", "\\\\") if "\\" in doubled else f"'{doubled}'"


def listed(names: Iterable[str]) -> str:
    """Names with commas between them."""
    return ", ".join(quoted(name) for name in names)
