"""What became of the tests of a group: counts, and what failed with its reason and its output."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

OUTPUT_LINES = 120
"""Of a failure's output the last so many lines are repeated; all of it is where the group printed it."""
REASON_CHARACTERS = 300


@dataclass(frozen=True)
class Failure:
    """One test that failed, or a group that ended badly."""

    name: str
    reason: str
    output: str
    kind: str = "FAILED"
    """``ERROR`` where the test itself was not at fault: its fixtures, or the file."""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.reason}"


@dataclass(frozen=True)
class Outcome:
    """What became of a group's tests."""

    passed: int = 0
    skipped: int = 0
    failures: Sequence[Failure] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    """File of tests -> how long its tests took."""

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.passed + other.passed,
            self.skipped + other.skipped,
            (*self.failures, *other.failures),
            {
                file: self.seconds.get(file, 0.0) + other.seconds.get(file, 0.0)
                for file in (*self.seconds, *other.seconds)
            },
        )


def of_pytest(report: Path) -> Outcome:
    """What pytest's ``--junitxml`` (``xunit1``) says; nothing where it has not been written."""
    if not report.is_file():
        return Outcome()
    passed = skipped = 0
    failures: list[Failure] = []
    seconds: dict[str, float] = {}
    for case in ElementTree.parse(report).iter("testcase"):
        file = case.get("file", "")
        seconds[file] = seconds.get(file, 0.0) + float(case.get("time", "0"))
        bad = [_failure(case, file, child) for child in case if child.tag in ("failure", "error")]
        failures += bad
        if case.find("skipped") is not None:
            skipped += 1
        elif not bad:
            passed += 1
    return Outcome(passed, skipped, failures, seconds)


_RULES = re.compile(r"^-+ Captured \w+ -+$", re.MULTILINE)
"""Pytest writes them around what a test printed, and where it printed nothing too."""


def _failure(case: ElementTree.Element, file: str, element: ElementTree.Element) -> Failure:
    message = element.get("message") or (element.text or "").strip().rpartition("\n")[2]
    printed = [text for tag in ("system-out", "system-err") if (text := _RULES.sub("", case.findtext(tag, "")).strip())]
    return Failure(
        f"{file}::{case.get('name', '')}" if file else case.get("name", ""),
        " ".join(message.split())[:REASON_CHARACTERS],
        "\n".join([*(f"{text}\n---" for text in printed), element.text or ""]),
        "FAILED" if element.tag == "failure" else "ERROR",
    )


_CARGO_COUNTS = re.compile(r"^test result: \w+\. (\d+) passed; \d+ failed; (\d+) ignored;", re.MULTILINE)
_CARGO_FAILURE = re.compile(
    r"^---- (.+) stdout ----\n(.*?)(?=^---- .+ stdout ----$|^failures:$)", re.MULTILINE | re.DOTALL
)
_CARGO_LEFT = re.compile(r"^cargo left on the machine.*$", re.MULTILINE)


def of_cargo(text: str) -> Outcome:
    """What `cargo test --quiet` printed, around which :mod:`tests.leaks` looked for leftovers."""
    counts = [(int(passed), int(ignored)) for passed, ignored in _CARGO_COUNTS.findall(text)]
    failures = [
        *(Failure(name, _panic(output), output) for name, output in _CARGO_FAILURE.findall(text)),
        *(Failure("cargo test", line, "") for line in _CARGO_LEFT.findall(text)),
    ]
    return Outcome(sum(passed for passed, _ in counts), sum(ignored for _, ignored in counts), failures)


def _panic(output: str) -> str:
    """Where a Rust test panicked, and with what."""
    lines = [line for line in output.splitlines() if line.strip()]
    at = next((index for index, line in enumerate(lines) if " panicked at " in line), 0)
    return " ".join(lines[at : at + 2])[:REASON_CHARACTERS]


def with_the_unsaid(outcome: Outcome, group: str, code: int, text: str) -> Outcome:
    """``found``, and a failure of the group itself where it ended badly, or well without a test, and says nothing of it."""
    if outcome.failures or (code == 0 and outcome.passed):
        return outcome
    how = f"killed by signal {-code}" if code < 0 else f"ended with {code}"
    what = "named no test that failed" if code else "ran no test"
    return outcome + Outcome(failures=(Failure(group, f"{how}, and {what}", text, "ERROR"),))


def said(outcome: Outcome) -> Iterator[str]:
    """Lines for the end of a run: the output of what failed, then each failure with its reason, then counts."""
    for failure in outcome.failures:
        yield f"\n=== {failure.name}"
        yield from failure.output.splitlines()[-OUTPUT_LINES:]
    if outcome.failures:
        yield ""
    yield from map(str, outcome.failures)
    yield f"{outcome.passed} passed, {len(outcome.failures)} failed, {outcome.skipped} skipped"
