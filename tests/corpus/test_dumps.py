"""Dumps as people have them are restored with every row and role, or refused by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import PgdynoError
from pgdyno.server.binaries import find_binaries

from ..database.shop import own, restored
from . import Case, cases


def on_each_server(kind: str) -> list[object]:
    """A case for each version of a server that its dump is restored on."""
    return [
        pytest.param(
            *given.values,
            major,
            id=f"{given.id}-on-{major}",
            marks=[pytest.mark.needs_system_postgres] if major == "15" else [],
        )
        for given in cases(kind)
        for major in given.values[0].expected["on"]
    ]


@pytest.mark.parametrize(("case", "major"), on_each_server("dumps"))
def test_a_dump_comes_back_or_is_refused_by_name(
    case: Case,
    major: str,
    place: Path,
    request: pytest.FixtureRequest,
) -> None:
    binaries = find_binaries(request.getfixturevalue("system_postgres") if major == "15" else None)
    keys = {"globals": case.path(case.expected["globals"])} if "globals" in case.expected else {}
    name = case.expected.get("database")
    if "refused" in case.expected:
        with pytest.raises(PgdynoError) as refusal:
            restored(own(case.path(case.expected["dump"]), name=name, **keys), binaries, place)
        assert refusal.value.code == case.expected["refused"]
        assert refusal.value.data.items() >= case.expected.get("data", {}).items()
        return
    _, cluster = restored(own(case.path(case.expected["dump"]), name=name, **keys), binaries, place)
    try:
        with cluster.running({"shared_buffers": "32MB"}), cluster.connect() as connection:
            for row in case.expected["rows"]:
                result = connection.execute(row["sql"].encode()).fetchone()
                assert result is not None
                assert [str(value) for value in result] == row["is"], row["sql"]
    finally:
        cluster.close()
