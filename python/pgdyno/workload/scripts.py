"""Scripts: pgbench's built-in ones in a mix, and files of the user's in pgbench's language."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..base.errors import InputError

ScriptName = Literal["tpcb-like", "simple-update", "select-only"]

SCRIPTS: tuple[ScriptName, ...] = ("tpcb-like", "simple-update", "select-only")
READ_ONLY: frozenset[str] = frozenset({"select-only"})
"""Built-in scripts that write nothing; each of the others writes one row of history."""
WEIGHT_MAX = 1_000_000
"""Above this a weight is a slip; sums stay far within the engine's numbers."""


class ScriptFile(BaseModel):
    """A script of the user's, with its text: a record must be able to repeat it when the file has changed."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(min_length=1)]
    """The file, as it was written; what statistics call the script."""
    text: str
    """Its content."""
    weight: Annotated[int, Field(ge=1, le=WEIGHT_MAX)] = 1
    """How often it runs, relative to the others."""


def parse_script(text: str) -> tuple[tuple[ScriptName, int], ...]:
    """Read ``select-only@3,simple-update@1``; ValueError says what is wrong. A missing weight is 1."""
    parsed: list[tuple[ScriptName, int]] = []
    for part in text.split(","):
        name, at, weight = part.strip().partition("@")
        known = next((script for script in SCRIPTS if script == name), None)
        if known is None:
            raise ValueError(f"there is no script {name!r}; there are {', '.join(SCRIPTS)}, and mixes such as a@3,b@1")
        if at and not (weight.isascii() and weight.isdigit() and int(weight) > 0):
            raise ValueError(f"the weight of {name} is {weight!r}; it must be a whole number above 0")
        if any(script == known for script, _ in parsed):
            raise ValueError(f"{name} occurs twice in {text!r}; give it one weight")
        parsed.append((known, int(weight) if at else 1))
    return tuple(parsed)


def split_weight(text: str) -> tuple[str, int]:
    """``transfer.sql@9`` as name and weight; 1 where none is written. :class:`InputError` for a weight that is none."""
    name, at, weight = text.rpartition("@")
    if not at:
        return text, 1
    if not (name and weight.isascii() and weight.isdigit() and 0 < int(weight) <= WEIGHT_MAX):
        raise InputError(
            f"the weight in `{text}` is not a whole number from 1 to {WEIGHT_MAX:,}",
            remedy="write it as transfer.sql@9",
        )
    return name, int(weight)


def read_script(text: str, folder: Path) -> dict[str, Any]:
    """``FILE.sql@WEIGHT``, below ``folder`` unless absolute, as the fields of a :class:`ScriptFile`.

    :class:`InputError` when the file cannot be read.
    """
    name, weight = split_weight(text)
    try:
        content = (folder / name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(
            f"the script {folder / name} cannot be read: {why}",
            remedy=f"name a file in pgbench's language; relative names begin at {folder.absolute()}",
        ) from None
    return {"name": name, "text": content, "weight": weight}
