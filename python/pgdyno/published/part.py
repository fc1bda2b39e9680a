"""What all parts of a file of published figures have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]*$")]


class FilePart(BaseModel):
    """A part of a file; a key that it does not have is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)
