"""What was found: a wheel, roots in which it was installed, an image, a source distribution."""

from __future__ import annotations

import os
import platform
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from pydantic import BaseModel, Field

from pgdyno import _build
from tools.install import ROOT
from tools.measured import Kept
from tools.wheel import description

_SAID = 400
"""Characters that are kept of what a command said that failed."""


@dataclass(frozen=True)
class Done:
    """A program that has done."""

    code: int
    out: str
    err: str
    seconds: float

    @property
    def said(self) -> str:
        """Both outputs."""
        return f"{self.out}{self.err}"


def load_average() -> str:
    """The machine's load average of the last minute, of this bench's own work and of that of others."""
    return f"{os.getloadavg()[0]:.1f}"


class Wheel(BaseModel, frozen=True):
    """`make wheel` in a fresh clone."""

    name: str
    seconds: float
    """From the clone to the examined file."""
    cpu_s: float
    """CPU of all its processes: on a machine of its own two cores need at least half of it."""
    load: str
    """The machine's load average (one minute) before and at the end: two cores that do nothing else have at most about 2."""
    size_bytes: int
    glibc: str
    """The newest symbol that the engine asks for."""
    libraries: list[str]


class Step(BaseModel, frozen=True):
    """One command, and whether it did what it should."""

    name: str
    command: str
    code: int
    seconds: float
    holds: bool
    said: str = ""
    """The end of what it said, if it did not."""

    @classmethod
    def of(
        cls, name: str, command: str, done: Done, *, codes: tuple[int, ...] = (0,), has: tuple[str, ...] = ()
    ) -> Self:
        """A command that holds if it ended with one of the codes and said what each expression of ``has`` matches."""
        text = " ".join(done.said.split())
        lacks = [other for other in has if re.search(other, text) is None]
        holds = done.code in codes and not lacks
        why = f"lacks {', '.join(lacks)}: " if lacks else ""
        kept = "" if holds else why + text[-_SAID:]
        return cls(name=name, command=command, code=done.code, seconds=round(done.seconds, 1), holds=holds, said=kept)


class Verdict(BaseModel, frozen=True):
    """From the bare root to the first verdict."""

    install_s: float
    """The system's packages, and the wheel with its dependencies."""
    demo_s: float
    load: str
    """As that of :class:`Wheel`."""

    @property
    def total_s(self) -> float:
        """Both."""
        return self.install_s + self.demo_s


class Installed(BaseModel):
    """One way to install it, in one release of Debian."""

    suite: str
    way: str
    release: str
    """As its /etc/os-release has it."""
    glibc: str
    python: str
    steps: list[Step] = Field(default_factory=list)
    verdict: Verdict | None = None
    help_cpu_s: float | None = None
    """CPU of ``pgdyno --help`` above that of Python alone."""
    sizes_mb: dict[str, float] = Field(default_factory=dict)
    """Distribution -> decimal megabytes of its installed files."""
    left: list[str] | None = None
    """What ``find`` shows after uninstalling; None where nothing was installed."""
    not_had: str = ""
    """Why it could not be installed there; only the engine was tried then."""

    @property
    def key(self) -> str:
        """Its name in the record."""
        return f"{self.suite} {self.way}"


class Image(BaseModel, frozen=True):
    """The image of the Containerfile."""

    built_by: str
    """`buildah`, or `the same steps in a chroot`, and why."""
    run_by: str
    base: str
    seconds: float
    """From the imported base to the committed image."""
    load: str
    """As that of :class:`Wheel`."""
    size_mb: float
    """Decimal megabytes of all files in it, its base included."""
    steps: list[Step]


class Sources(BaseModel, frozen=True):
    """The source distribution, built by pip in an empty virtual environment."""

    name: str
    size_bytes: int
    build_s: float
    tests: str
    """How pytest summed up tests/cli."""
    holds: bool


class Record(Kept):
    """All of it. A part that is None was not made yet."""

    begin: datetime
    kernel: str
    machine: str
    build_hash: str
    commit: str
    wheel: Wheel | None = None
    installed: list[Installed] = Field(default_factory=list)
    image: Image | None = None
    sources: Sources | None = None

    @classmethod
    def here(cls) -> Record:
        """One without a part."""
        return cls(
            begin=datetime.now(UTC).replace(microsecond=0),
            kernel=platform.release(),
            machine=platform.machine(),
            build_hash=_build.hash_sources(ROOT),
            commit=description.commit(ROOT)[:12],
        )

    def goes_on(self, now: Record) -> bool:
        """Whether parts that are made now belong to it: on the same kernel, of the same engine."""
        return (self.kernel, self.machine, self.build_hash) == (now.kernel, now.machine, now.build_hash)

    def has(self, part: str) -> bool:
        """Whether a part was made."""
        parts = {"wheel": self.wheel, "image": self.image, "sources": self.sources}
        return parts[part] is not None if part in parts else any(installed.key == part for installed in self.installed)

    def replace(self, part: Installed) -> None:
        """Put a part in the place of an earlier one of its name, or at the end."""
        self.installed = [installed for installed in self.installed if installed.key != part.key] + [part]
