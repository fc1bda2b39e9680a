"""Values go through a real server's log and come back as they were."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgdyno.server.cluster import Cluster
from tools.captured.logged import Logged, log_of

from .logged import FULL_PREFIX, captured, connected, sent

TEXT = st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=60)
PIECES = st.sampled_from(
    ["'", "''", "\n", "\n\t", "\t", "$1 = '", "', $2 = NULL", "...", "\\", '"', ",", "\r\n", "LOG:  ", "ü€"]
)
HOSTILE = st.lists(PIECES | TEXT, max_size=8).map("".join)
ROUNDS = 150
MANY = 1000
LARGE = "'\n\"" * (8 * 2**20 // 3)


@pytest.fixture(scope="module")
def logged(embedded_server: Cluster) -> tuple[Logged, list[list[str | None]]]:
    """Lists of values that were sent, in their order, and the logs of it."""
    values: list[list[str | None]] = []

    def use(cluster: Cluster) -> None:
        with connected(cluster) as session:

            @settings(max_examples=ROUNDS, database=None, suppress_health_check=list(HealthCheck))
            @given(st.lists(st.none() | HOSTILE, min_size=1, max_size=5))
            def send(some: list[str | None]) -> None:
                values.append(some)
                session.execute(f"SELECT {', '.join(['%s::text'] * len(some))}".encode(), some)

            send()
            for some in ([str(number) for number in range(MANY)], [LARGE]):
                values.append(list(some))
                session.execute(f"SELECT {', '.join(['%s::text'] * len(some))}".encode(), some)

    return log_of(embedded_server, "values", use, log_line_prefix=FULL_PREFIX), values


@pytest.mark.parametrize("end", ["csv", "json", "log"])
def test_whatever_values_hold_they_come_back_as_they_were(
    logged: tuple[Logged, list[list[str | None]]], tmp_path: Path, end: str
) -> None:
    files, values = logged
    capture, account = captured(tmp_path, files.files[end], options=("--prefix", FULL_PREFIX) if end == "log" else ())
    (calls,) = sent(capture)
    assert [call[2] for call in calls] == values
    assert account["torn"] == account["without_values"] == 0
    ends_in_dots = sum(any(value is not None and value.endswith("...") for value in some) for some in values)
    assert account["cut"] == ends_in_dots
