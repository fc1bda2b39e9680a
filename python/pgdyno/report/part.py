"""What the parts of the JSON document have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Share = Annotated[float, Field(ge=0, le=1)]


class DocumentPart(BaseModel):
    """A part of the document. What has the same names in the analysis is read from there: ``DocumentPart.model_validate(found)``."""

    model_config = ConfigDict(frozen=True, extra="forbid", from_attributes=True)
