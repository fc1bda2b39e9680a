"""Reads the files of ``catalog/published/``."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from pathlib import Path

from pydantic import ValidationError

from pgdyno.published.document import PublishedDocument

from ..base.errors import InputError


def read_document(path: Path) -> PublishedDocument:
    """The document in a file. :class:`InputError` names the file and each key that is wrong."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {why}", remedy="name a file of catalog/published") from None
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{path}: {error}", remedy="fix this line; strings must be quoted") from None
    try:
        document = PublishedDocument.model_validate(content)
    except ValidationError as error:
        wrong = [f"{_key(other['loc'])}: {other['msg']}" for other in error.errors()]
        raise InputError(
            f"{path}: {'; '.join(wrong)}", remedy="write it as the other files of catalog/published do"
        ) from None
    if document.name != path.stem:
        raise InputError(f"{path}: its name is `{document.name}`", remedy="give the file the name of its document")
    return document


def read_documents(folder: Path) -> list[PublishedDocument]:
    """Every document of a folder, by name."""
    return [read_document(path) for path in sorted(folder.glob("*.toml"))]


def _key(place: tuple[str | int, ...]) -> str:
    """``figure[3].unit``; entries of a list are counted from 1."""
    return "".join(f"[{item + 1}]" if isinstance(item, int) else f".{item}" for item in place).lstrip(".")
