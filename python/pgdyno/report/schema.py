"""Parts of the JSON documents that commands print, and their schemas."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]


class DocumentPart(BaseModel):
    """A part of the document. What has the same names in the analysis is read from there: ``DocumentPart.model_validate(found)``."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)


def schema_text(model: type[BaseModel], title: str) -> str:
    """The JSON Schema (2020-12) of a document that a command prints."""
    titled = {"$schema": "https://json-schema.org/draft/2020-12/schema", **model.model_json_schema(), "title": title}
    return json.dumps(titled, indent=2, ensure_ascii=False) + "\n"


def write_or_check(file: Path, text: str, module: str, arguments: list[str]) -> int:
    """Write a generated file, or with ``--check`` compare it; returns the exit code. ``module`` is who makes it."""
    if arguments not in ([], ["--check"]):
        print(f"usage: python -m {module} [--check]", file=sys.stderr)
        return 2
    if not arguments:
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return 0
    if file.is_file() and file.read_text() == text:
        return 0
    print(f"{file} is not what the model makes: run `python -m {module}`", file=sys.stderr)
    return 1
