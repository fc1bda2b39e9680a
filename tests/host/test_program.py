"""Programs of the system: what they said reaches who asked, in one line."""

from __future__ import annotations

import pytest

from pgdyno.base.errors import HostError
from pgdyno.machine import program


def test_a_program_that_works_says_nothing() -> None:
    assert program.failure("true") is None
    program.run("sh", "-c", "echo written; exit 0")


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo first >&2; echo second >&2; exit 1", "first second"),
        ("echo to standard output; exit 1", "to standard output"),
        ("exit 3", "sh ended with 3"),
        (f"echo {'x' * 500} >&2; exit 1", "x" * 200),
        ("read line || echo it waits for nothing >&2; exit 1", "it waits for nothing"),
    ],
)
def test_what_a_program_said_is_the_error(script: str, said: str) -> None:
    assert program.failure("sh", "-c", script) == said
    with pytest.raises(HostError, match="sh failed: ") as failed:
        program.run("sh", "-c", script)
    assert said in str(failed.value) and failed.value.remedy.endswith("by hand")


def test_a_program_that_is_missing_or_does_not_end_by_itself_is_told() -> None:
    with pytest.raises(HostError, match=r"mkfs\.none is not installed"):
        program.run("mkfs.none", "/dev/null")
    with pytest.raises(HostError, match="sleep has not ended after 0 s"):
        program.failure("sleep", "60", timeout_s=0.1)
    with pytest.raises(HostError, match="sh was ended by SIGKILL"):
        program.failure("sh", "-c", "kill -9 $$")
