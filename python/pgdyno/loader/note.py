"""What is said of a load beside its result."""

from __future__ import annotations

from typing import NamedTuple


class LoadNote(NamedTuple):
    """A sentence, and a stable name of what it is about, from the largest part to the smallest; empty where it has none."""

    text: str
    code: str = ""
