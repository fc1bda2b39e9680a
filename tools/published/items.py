"""What a document does or says beside its figures, and where pgdyno has it, or why not: ``catalog/published/items``."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, ValidationError, model_validator

from pgdyno.base.errors import InputError
from pgdyno.published.document import FilePart, Text

FOLDER = "catalog/published/items"
LETTERS = {"whitepaper": "W", "bulk-load": "B", "io2": "I", "huawei": "H", "article-2013": "P"}
"""Document -> the letter of its items."""


class Item(FilePart):
    """One thing."""

    id: Annotated[str, Field(pattern=r"^[A-Z][1-9][0-9]?$")]
    does: Text
    """What the document does or says."""
    here: str = ""
    """What pgdyno has of it; empty where it has nothing."""
    commands: tuple[Text, ...] = ()
    """Without ``pgdyno``: ``volume types``."""
    pages: Annotated[tuple[Text, ...], Field(min_length=1)]
    """Documents and experiment files that have more, as paths in the repository."""
    missing: str = ""
    """What is not there, and why; empty where nothing is missing."""

    @model_validator(mode="after")
    def _is_answered(self) -> Self:
        if not self.here and not self.missing:
            raise ValueError(f"{self.id} has no answer: write in `here` what there is, or in `missing` why nothing is")
        if bool(self.here) is not bool(self.commands):
            raise ValueError(f"{self.id} needs `commands` where it has `here`, and only there")
        return self

    @property
    def state(self) -> str:
        """``yes``, ``in part`` or ``no``."""
        if not self.missing:
            return "yes"
        return "in part" if self.here else "no"


class Items(FilePart):
    """The things of one document."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    document: Text
    """The name of the document."""
    item: Annotated[tuple[Item, ...], Field(min_length=1)]


def read_items(path: Path) -> Items:
    """The items of a file. :class:`InputError` says what is wrong in it."""
    try:
        return Items.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (tomllib.TOMLDecodeError, ValidationError) as error:
        first = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise InputError(f"{path}: {first}", remedy="correct the file") from None
