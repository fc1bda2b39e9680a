"""HammerDB for tests: a program that stands in for it, and a database as it leaves one. Each kind of workload has its own of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from .schemas import cloning

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

    from ..fill.filled import Database


def stands_in(installed: Callable[[Path], Path], settings: Mapping[str, str] | None = None) -> Any:
    """The fixture ``home``: a program that ``installed`` puts into a folder, found as HammerDB is, with these variables set."""

    @pytest.fixture
    def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        home = installed(tmp_path / "HammerDB-6.0")
        for name, value in {"HAMMERDB_HOME": str(home), **(settings or {})}.items():
            monkeypatch.setenv(name, value)
        return home

    return home


def as_left(change: Callable[[Database], None], scope: Literal["function", "module"] = "function") -> Any:
    """The fixture ``built``: a clone of the folder's database ``hammerdb`` that ``change`` makes what HammerDB leaves.

    One of a module is for tests that compare with what they found.
    """

    @pytest.fixture(scope=scope)
    def built(hammerdb: Database, cluster: Cluster) -> Iterator[Database]:
        with cloning(cluster) as clone:
            mine = clone(hammerdb)
            change(mine)
            yield mine

    return built
