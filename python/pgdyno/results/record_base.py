"""What all records have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Count = Annotated[int, Field(ge=0)]


class Record(BaseModel):
    """A record is written once and never changed, and a misspelt field is an error rather than lost."""

    model_config = ConfigDict(frozen=True, extra="forbid")
