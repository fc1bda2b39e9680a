"""Loads as questions that can travel: one file each, answered alike here and on another host; and what many come to together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pgdyno.errors import InputError, PgdynoError
from pgdyno.size import document
from pgdyno.size.advice import advise
from pgdyno.size.choice import choose
from pgdyno.size.demand import demand_of
from pgdyno.size.reading import cloudwatch, iostat, sar
from pgdyno.size.search import MEMBERS_MAX
from pgdyno.text import UNKNOWN, fitted, money, number

if TYPE_CHECKING:
    from pgdyno.size.advice import Advice
    from pgdyno.size.measured import Measured


@dataclass(frozen=True)
class File:
    """A measured load in the words of a program, and how it is read."""

    flag: str
    """``--iostat``, ``--sar`` or ``--cloudwatch``."""
    name: str
    text: str
    devices: tuple[str, ...] = ()
    interval_s: float | None = None
    keep_first: bool | None = None
    """Whether iostat's first report counts; None: where it shows the most."""

    def read(self) -> Measured:
        """The load. :class:`InputError` where it is none, or does not say which device."""
        if self.flag == "--iostat":
            found = iostat.read(self.text, self.name, self.interval_s, self.keep_first, wanted=self.devices)
            return choose(found, self.devices, self.name)
        if self.flag == "--cloudwatch":
            return choose(cloudwatch.read(self.text, self.name, self.interval_s, self.devices), self.devices, self.name)
        if self.interval_s is not None:
            raise InputError("--interval is not for --sar", remedy="omit it: sar records when each interval ended")
        return choose(sar.read(self.text, self.name, wanted=self.devices), self.devices, self.name)


@dataclass(frozen=True)
class Terms:
    """What must hold for what is bought."""

    percentile: float
    headroom: float
    size_bytes: int | None = None
    instance: str | None = None
    among: tuple[str, ...] = ()
    members_max: int = MEMBERS_MAX

    def advice(self, measured: Measured) -> Advice:
        """What to buy for a load."""
        return advise(
            demand_of(measured, self.percentile, self.headroom),
            size_bytes=measured.size_bytes if self.size_bytes is None else self.size_bytes,
            instance=self.instance,
            among=self.among,
            members_max=self.members_max,
        )


@dataclass(frozen=True)
class Question:
    """A file, and the terms."""

    file: File
    terms: Terms


@dataclass(frozen=True)
class Answer:
    """Of one file: the document of its advice, or why there is none."""

    name: str
    document: dict[str, Any] | None
    error: str = ""
    remedy: str = ""

    @property
    def cheapest(self) -> dict[str, Any] | None:
        """The volume or array that carries it at the least price; None where nothing does."""
        volumes: list[dict[str, Any]] = [] if self.document is None else self.document["volumes"]
        return volumes[0] if volumes else None


def answer(question: Question) -> Answer:
    """The answer to one question. A file that is wrong does not hide those that are right."""
    try:
        advice = question.terms.advice(question.file.read())
    except PgdynoError as error:
        return Answer(question.file.name, None, error.message, error.remedy)
    return Answer(question.file.name, document.document(advice))


def total_usd_per_month(answers: Sequence[Answer]) -> float | None:
    """What the cheapest of all cost together; None where one has none, or no price."""
    prices = [None if one.cheapest is None else one.cheapest["usd_per_month"] for one in answers]
    known = [price for price in prices if price is not None]
    return round(sum(known), 2) if len(known) == len(prices) else None


def text(answers: Sequence[Answer], width: int | None = None) -> str:
    """A line for each, and the total; a table of at most ``width`` columns."""
    head = ("FILE", "IOPS", "MIB/S", "CHEAPEST VOLUME", "A MONTH")
    rows = [_row(one) for one in answers]
    total = total_usd_per_month(answers)
    last = (f"all {len(answers)}", "", "", "", money(total))
    why = [f"{one.name}: {one.error}" for one in answers if one.error]
    why += [f"{one.name}: no volume carries it" for one in answers if not one.error and one.cheapest is None]
    return "\n".join([*fitted([head, *rows, last], width, (0, 3)), *([""] if why else []), *why])


def _row(one: Answer) -> tuple[str, ...]:
    if one.document is None:
        return (one.name, *[UNKNOWN] * 4)
    demand, best = one.document["demand"], one.cheapest
    price = None if best is None else best["usd_per_month"]
    return (
        one.name,
        number(demand["needed_iops"]),
        number(demand["needed_mib_per_s"]),
        UNKNOWN if best is None else best["spec"],
        money(price),
    )


def total(answers: Sequence[Answer]) -> dict[str, Any]:
    """All as one document."""
    return {
        "schema_version": document.SCHEMA_VERSION,
        "files": [
            {"name": one.name, "advice": one.document, "error": one.error or None, "remedy": one.remedy or None}
            for one in answers
        ],
        "total": {"files": len(answers), "usd_per_month": total_usd_per_month(answers)},
    }
