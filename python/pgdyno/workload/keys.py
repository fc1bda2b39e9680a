"""Tables of keys in an experiment file, and refusals of a key."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import BaseModel, ConfigDict
from pydantic_core import PydanticCustomError


class Refusal(NamedTuple):
    """A key that does not go with the others."""

    key: str
    """Dotted, below ``[workload]``."""
    message: str
    remedy: str = ""


def at_key(key: str, message: str) -> PydanticCustomError:
    """What a check of a whole table raises about one of its keys."""
    return PydanticCustomError("at_key", "{message}", {"key": key, "message": message})


class KeyTable(BaseModel):
    """A table of keys. An unknown one is an error, and nothing is changed after reading."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)
