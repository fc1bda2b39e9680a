"""In what two documents differ: which value stands where in one and which in the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Place = tuple[str | int, ...]
"""Keys and positions that lead to a value."""


@dataclass(frozen=True)
class Difference:
    """A value that two documents do not share; None where one has none."""

    place: Place
    old: Any
    new: Any


def differences(old: Any, new: Any) -> list[Difference]:
    """Every place at which two documents of tables, lists and values differ, in the order in which they come."""
    before, after = flat(old), flat(new)
    return list(_differences(before, after))


def flat(value: Any, place: Place = ()) -> dict[Place, Any]:
    """Place -> value of whatever has nothing below it."""
    if isinstance(value, dict) and value:
        return {key: inner for name, part in value.items() for key, inner in flat(part, (*place, name)).items()}
    if isinstance(value, list | tuple) and value:
        return {key: inner for at, part in enumerate(value) for key, inner in flat(part, (*place, at)).items()}
    return {place: value}


def _differences(old: Mapping[Place, Any], new: Mapping[Place, Any]) -> Iterator[Difference]:
    for place in dict.fromkeys((*old, *new)):
        if old.get(place) != new.get(place):
            yield Difference(place, old.get(place), new.get(place))


def same_order(factors: Iterable[str], others: Iterable[str]) -> bool:
    """Whether two experiments number their arms alike: by the order of their factors, which their hash does not know."""
    return list(factors) == list(others)
