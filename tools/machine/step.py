"""What is done in the machine, one thing after another, and what must come out of it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tools.machine.image import USER

if TYPE_CHECKING:
    from collections.abc import Callable

    from tools.machine.virtual import Answer, Machine

PGDYNO = f"/home/{USER}/.local/bin/pgdyno"
"""Where pipx puts it. Root's path does not have it, as on any machine."""
WORDS_MAX = 300
"""A failed command's last words are cut to so many characters."""


@dataclass(frozen=True)
class Found:
    """What came out."""

    holds: bool
    text: str
    facts: dict[str, str] = field(default_factory=dict)
    """Of the machine, for the head of the page."""


@dataclass(frozen=True)
class Step:
    """One thing that is done."""

    key: str
    did: str
    expected: str
    run: Callable[[Machine], Found]


def as_user(machine: Machine, command: str, timeout_s: float = 300.0) -> Answer:
    """Run a shell's command as the unprivileged user."""
    return machine.ask(command, user=USER, timeout_s=timeout_s)


def sudo(words: str) -> str:
    """The command line by which that user runs pgdyno as root."""
    return f"sudo {PGDYNO} {words}"


def failed(answer: Answer) -> Found:
    """A command that did not do what it should."""
    code = "did not end in time" if answer.code is None else f"ended with {answer.code}"
    words = " ".join((answer.stderr.strip() or answer.stdout.strip()).split())
    return Found(False, f"{code} after {answer.seconds:.0f} s: {words[-WORDS_MAX:]}")


def document(answer: Answer) -> dict[str, Any]:
    """The JSON document that a command printed."""
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def checks(machine: Machine, prefix: str = "") -> dict[str, dict[str, str]] | None:
    """The checks of ``pgdyno doctor`` by name, run by the machine's root behind ``prefix``; None where it broke."""
    answer = machine.ask(f"{prefix} {PGDYNO} doctor --json", timeout_s=300.0)
    if answer.code not in (0, 3) or not answer.stdout.startswith("{"):
        return None
    return {check["name"]: check for check in document(answer)["checks"]}


def quoted(script: str) -> str:
    """A script as one word of a shell."""
    return shlex.quote(script)
