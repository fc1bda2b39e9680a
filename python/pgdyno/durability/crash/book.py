"""Contents of volumes after a cut, from a recording's write log; the engine holds the log and makes them."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...base import engine
from ...base.errors import InputError, PgdynoError
from .recording import STATES, Recording, load


@dataclass(frozen=True)
class Name:
    """What names a cut: it gives the same content each time."""

    recording: str
    reading: str
    seed: int
    number: int

    def __str__(self) -> str:
        return f"{self.recording}:{self.reading}:{self.seed}:{self.number}"

    @classmethod
    def parse(cls, text: str) -> Name:
        """From its text. :class:`InputError` when it is none."""
        parts = text.rsplit(":", 3)
        if len(parts) != 4 or not (parts[2].isdigit() and parts[3].isdigit()):
            raise InputError(
                f"`{text}` does not name a cut",
                remedy="name it as `pgdyno crashtest` printed it: DIR:READING:SEED:NUMBER",
            )
        return cls(parts[0], parts[1], int(parts[2]), int(parts[3]))


@dataclass(frozen=True)
class Cut:
    """A content of the volumes after a cut."""

    name: Name
    stratum: str
    position: int
    cut_ns: int
    """What was acknowledged before it was acknowledged before the cut."""
    hash: str
    new: bool
    """This book has not given the same content before."""
    undecided: list[dict[str, Any]]
    """Requests that were not durable, each with what was ``kept`` of it."""
    spoilt: dict[str, Any] | None
    """The request that a lie of the device spoilt."""

    @property
    def harmed(self) -> list[dict[str, Any]]:
        """Requests of which something is missing."""
        return [document for document in self.undecided if document["kept"] != "whole"]


class Book:
    """The write log of one recording. Threads may share it."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._engine = engine.Conversation(["crash"])
        self._lock = threading.Lock()
        question = {"log": str(recording.log), "strata": recording.strata(), "states": STATES}
        self.facts = self._ask(question)
        if self.facts["header"]["full"]:
            raise InputError(
                f"the write log of {recording.folder} ended before the recording",
                remedy="record it again, for fewer seconds",
            )

    def cut(
        self,
        reading: str,
        seed: int,
        number: int,
        files: Sequence[Path],
        *,
        again: bool = False,
        whole: Sequence[int] = (),
    ) -> Cut | None:
        """The content of this number; its ``files``, one for each volume, are written if it is new or wanted ``again``.

        ``None`` when the instant has no further content. Requests in ``whole`` stay whole, whatever is drawn.
        """
        question = {
            "command": "cut",
            "reading": reading,
            "seed": seed,
            "number": number,
            "files": [str(file) for file in files],
            "again": again,
            "whole": list(whole),
        }
        answer = self._ask(question)
        state = answer["state"]
        if state is None:
            return None
        return Cut(
            Name(str(self.recording.folder), reading, seed, number),
            answer["stratum"],
            answer["position"],
            answer["after_ns"],
            state["hash"],
            state["new"],
            state["undecided"],
            state["spoilt"],
        )

    def audit(self) -> dict[str, int]:
        """How the pages of 8 KiB that the server wrote reached the device."""
        return dict(self._ask({"command": "audit"}))

    def close(self) -> None:
        """End the engine."""
        self._engine.close()

    def _ask(self, question: dict[str, Any]) -> dict[str, Any]:
        with self._lock:
            (answer,) = self._engine.ask([question])
        if isinstance(answer, PgdynoError):
            raise answer
        return dict(answer)


def open_named(name: Name) -> Book:
    """The book of a cut's recording."""
    return Book(load(Path(name.recording)))
