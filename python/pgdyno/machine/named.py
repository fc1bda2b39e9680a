"""Things of a state directory that have names: finding one, or saying which there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from ..base.errors import InputError


class _Named(Protocol):
    @property
    def name(self) -> str: ...


Thing = TypeVar("Thing", bound=_Named)


def find_named(name: str, known: Sequence[Thing], what: str, there_are: str, none: str) -> Thing:
    """The one of ``known`` called ``name``. :class:`InputError` when there is none: its remedy says which ``there_are``, or ``none``."""
    for thing in known:
        if thing.name == name:
            return thing
    names = ", ".join(thing.name for thing in known)
    raise InputError(f"no {what} is called `{name}`", remedy=f"{there_are}: {names}" if names else none)
