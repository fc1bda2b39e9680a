"""What each stream asks, as the process that drives them takes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pgdyno.workload.tables import TPCH_SCHEMA, TpchProfile
from pgdyno.workload.tpcc_conditions import PUBLIC
from pgdyno.workload.tpch.orders import POWER, order_of
from pgdyno.workload.tpch.parameters import Parameters, drawn
from pgdyno.workload.tpch.refresh import Refresh, RefreshFunctions
from pgdyno.workload.tpch.texts import VIEW_QUERY, text_of, view_name, view_of

CHECK_CLIENT = "10s"
"""How often a server looks whether this machine is still there while it works on a query (PostgreSQL 14 and later)."""


@dataclass(frozen=True)
class Streams:
    """Streams of queries."""

    profile: TpchProfile
    scale_factor: float
    clients: int
    query_sets: int
    queries: Sequence[int]
    degree: int | None
    seed: int
    refresh: Refresh = "none"
    schema: str = TPCH_SCHEMA

    @property
    def numbers(self) -> range:
        """One goes as the power run does; several are numbered from 1."""
        return range(POWER, 1) if self.clients == 1 else range(1, self.clients + 1)

    @property
    def planned(self) -> int:
        """How many queries they ask."""
        return len(self.queries) * self.query_sets * self.clients

    @property
    def functions(self) -> RefreshFunctions | None:
        """The refresh functions: a set for each set of queries of a stream; None without."""
        if self.refresh == "none":
            return None
        return RefreshFunctions(self.profile, self.scale_factor, self.clients * self.query_sets, self.schema)

    @property
    def _temporary(self) -> bool:
        """Whether views are temporary ones: in a schema of others nothing is made."""
        return self.schema == PUBLIC

    def document(self, dsn: str, limit_s: float, folder: Path | None = None) -> dict[str, Any]:
        """The first line of the process's input. ``limit_s`` is how long all of it may take, ``folder`` has what is refreshed."""
        functions = self.functions
        settings = [f"SET search_path = {self.schema}", f"SET client_connection_check_interval = '{CHECK_CLIENT}'"]
        if self.degree is not None:
            settings.append(f"SET max_parallel_workers_per_gather = {self.degree}")
        streams: list[dict[str, Any]] = [self._stream(number) for number in self.numbers]
        if functions is not None and self.refresh == "stream":
            steps = [step for number in range(1, functions.sets + 1) for step in functions.steps(number)]
            streams.append({"stream": "refresh", "steps": steps, "after": []})
        return {
            "dsn": dsn,
            "settings": settings,
            "limit_s": limit_s,
            "streams": streams,
            "refresh": None if functions is None or folder is None else functions.document(folder),
        }

    def _stream(self, number: int) -> dict[str, Any]:
        view = view_name(number, temporary=self._temporary)
        drop = [f"DROP VIEW IF EXISTS {view}"] if VIEW_QUERY in self.queries else []
        return {"stream": number, "steps": list(self._steps(number)), "after": drop}

    def _steps(self, number: int) -> Iterator[dict[str, Any]]:
        results = [query for query in order_of(number) if query in self.queries]
        functions = self.functions if self.refresh == "power" else None
        for query_set in range(1, self.query_sets + 1):
            before, after = ((), ()) if functions is None else ((step,) for step in functions.steps(query_set))
            yield from before
            for place, query in enumerate(results, 1):
                parameters = drawn(
                    query, number, query_set, seed=self.seed, profile=self.profile, scale_factor=self.scale_factor
                )
                document = {"set": query_set, "place": place, "query": query, "parameters": parameters}
                limited, temporary = self.profile == "spec", self._temporary
                yield document | step(query, parameters, number, limited=limited, temporary=temporary)
            yield from after


def step(query: int, parameters: Parameters, stream: int, *, limited: bool, temporary: bool = False) -> dict[str, Any]:
    """The statements of a query: those before it, which are not timed, and its own."""
    view = view_name(stream, temporary=temporary)
    before = [f"DROP VIEW IF EXISTS {view}", view_of(parameters, view)] if query == VIEW_QUERY else []
    return {"before": before, "text": text_of(query, parameters, view, limited=limited)}
