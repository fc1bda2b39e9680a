"""The catalogue of volumes and instances: many questions to one engine.

Prices, sizes and rules are the engine's; an illegal specification is one that it refuses. Starting a process takes milliseconds
and an answer tens of microseconds, so what asks more than once opens a :class:`Catalog`.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

from . import engine
from .errors import InputError
from .specification import VolumeSpec


class Catalog:
    """An engine that answers until the end of the ``with`` block. Each specification is asked for once."""

    def __init__(self) -> None:
        self._conversation = engine.Conversation(["catalog"])
        self._known: dict[str, VolumeSpec | InputError] = {}
        self._service_times: dict[str, dict[str, Any]] = {}
        self._types: list[dict[str, Any]] | None = None
        self._instances: list[dict[str, Any]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._conversation.close()

    def resolve(self, spec: str) -> VolumeSpec:
        """The volume that ``spec`` means. :class:`InputError` says which published rule it breaks."""
        [result] = self.resolve_all([spec])
        if isinstance(result, InputError):
            raise result
        return result

    def find(self, spec: str) -> VolumeSpec | None:
        """The volume that ``spec`` means; None where it is refused."""
        [result] = self.resolve_all([spec])
        return None if isinstance(result, InputError) else result

    def resolve_all(self, specs: Sequence[str]) -> list[VolumeSpec | InputError]:
        """The volume that each specification means, or its refusal."""
        new = [spec for spec in dict.fromkeys(specs) if spec not in self._known]
        with _uncollected():
            for spec, item in zip(new, self._conversation.ask({"resolve": spec} for spec in new), strict=True):
                self._known[spec] = item if isinstance(item, InputError) else VolumeSpec.of(self._shared(item))
        return [self._known[spec] for spec in specs]

    def cheapest_all(self, needs: Iterable[Mapping[str, Any]]) -> list[VolumeSpec | None]:
        """For each need (``type``, ``least_bytes``, ``ops_per_s``, ``bytes_per_s``) the cheapest volume of the type that has it without
        credits; None where none has. Their documents are without service times: those are their type's.
        """
        specs: list[VolumeSpec | None] = []
        with _uncollected():
            for item in self._conversation.ask({"cheapest": dict(need)} for need in needs):
                if isinstance(item, InputError):
                    raise item
                specs.append(None if item is None else VolumeSpec.of(item))
        return specs

    def volume_types(self) -> list[dict[str, Any]]:
        """Every volume type with the range of its limits, as the engine lists them."""
        if self._types is None:
            self._types = self._one({"volume_types": {}})
        return self._types

    def instance_types(self) -> list[dict[str, Any]]:
        """Every instance type, as the engine lists them."""
        if self._instances is None:
            self._instances = self._one({"instance_types": {}})
        return self._instances

    def snapshots(self) -> dict[str, Any]:
        """How snapshots are taken (``taking``), what they cost (``prices``), and the bounds of what a policy says (``policy``)."""
        snapshots: dict[str, Any] = self._one({"snapshots": {}})
        return snapshots

    def _shared(self, document: dict[str, Any]) -> dict[str, Any]:
        """The document with the service times of its type as one object: they are most of it, and the same in all of them."""
        for other in (document, (document.get("array") or {}).get("member") or document):
            params = other["params"]
            known = self._service_times.setdefault(other["type"], params["service_time"])
            if params["service_time"] == known:
                params["service_time"] = known
        return document

    def _one(self, question: dict[str, Any]) -> Any:
        [result] = self._conversation.ask([question])
        if isinstance(result, InputError):
            raise result
        return result


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: of what is read here nothing is garbage, and looking through it again and again takes half of the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def resolve(spec: str) -> VolumeSpec:
    """The volume that ``spec`` means, asked of an engine of its own. :class:`InputError` says which published rule it breaks."""
    with Catalog() as catalog:
        return catalog.resolve(spec)
