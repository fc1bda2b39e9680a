"""A server to sample, and one that does not answer."""

from __future__ import annotations

import psycopg
import pytest

from ..support.servers import cluster, older_server

__all__ = ["cluster", "older_server"]


@pytest.fixture
def timeouts_asked(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """For how long each connection to a server that does not answer was waited for, in s."""
    results: list[object] = []

    def busy(*_: object, **options: object) -> None:
        results.append(options["connect_timeout"])
        raise psycopg.OperationalError("connection timeout expired")

    monkeypatch.setattr(psycopg, "connect", busy)
    return results
