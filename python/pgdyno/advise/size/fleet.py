"""Loads of many files: one question each, answered here or on another host, and their total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import PurePath
from typing import Any

from ...base.catalog import Catalog
from ...base.errors import InputError, PgdynoError
from ...base.text import UNKNOWN, fitted, money, number
from . import capped, presentation
from .advice import Advice, advise
from .choice import choose
from .demand import demand_of
from .measured import DeviceSamples
from .reading import cloudwatch, sysstat
from .search import MEMBERS_MAX


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

    def read(self) -> DeviceSamples:
        """The load. :class:`InputError` where it is none, or does not say which device."""
        if self.flag == "--iostat":
            result = sysstat.read_iostat(self.text, self.name, self.interval_s, self.keep_first, wanted=self.devices)
            return choose(result, self.devices, self.name)
        if self.flag == "--cloudwatch":
            return choose(cloudwatch.read(self.text, self.name, self.interval_s, self.devices), self.devices, self.name)
        if self.interval_s is not None:
            raise InputError("--interval is not for --sar", remedy="omit it: sar records when each interval ended")
        return choose(sysstat.read_sar(self.text, self.name, wanted=self.devices), self.devices, self.name)


@dataclass(frozen=True)
class Terms:
    """What must hold for what is bought."""

    percentile: float
    headroom: float
    size_bytes: int | None = None
    instance: str | None = None
    among: tuple[str, ...] = ()
    members_max: int = MEMBERS_MAX
    bought: str | None = None
    """The volume that was measured, ``gp2:size=250GiB``; None: nothing was said of it."""
    sizes: tuple[tuple[str, int], ...] = ()
    """Patterns of file names, and what must fit where one matches; the last that matches decides."""

    def size_of(self, name: str) -> int | None:
        """What must fit on the volume of a file; None where nothing was said."""
        numbers = [
            size_bytes
            for pattern, size_bytes in self.sizes
            if fnmatchcase(name, pattern) or fnmatchcase(PurePath(name).name, pattern)
        ]
        return numbers[-1] if numbers else self.size_bytes

    def advice(self, measured: DeviceSamples, name: str = "") -> Advice:
        """What to buy for the load of a file. :class:`InputError` where ``bought`` cannot have been what was measured."""
        demand = demand_of(measured, self.percentile, self.headroom)
        with Catalog() as catalog:
            bought = None if self.bought is None else catalog.resolve(self.bought)
            typical = capped.typical_limits(catalog)
        size_bytes = self.size_of(name)
        if size_bytes is None:
            size_bytes = measured.size_bytes if bought is None else bought.size_bytes
        among = self.among or measured.among
        advice = advise(
            demand,
            size_bytes=size_bytes,
            instance=self.instance,
            among=among,
            members_max=self.members_max,
            present=self.bought,
        )
        result = capped.find(demand, bought, typical)
        if result is None:
            return replace(advice, capped=None)

        def cheapest(times: float) -> tuple[str, float | None] | None:
            wanted = demand_of(measured, self.percentile, (1 + self.headroom) * times - 1)
            choices = (
                advice
                if times == 1
                else advise(wanted, size_bytes=size_bytes, among=among, members_max=1, present=self.bought)
            ).choices
            single = next((choice for choice in choices if choice.members == 1), None)
            return None if single is None else (single.spec, single.usd_per_month)

        return replace(advice, capped=replace(result, steps=tuple(capped.steps(result, demand, cheapest))))


@dataclass(frozen=True)
class FileRequest:
    """A file, and the terms."""

    file: File
    terms: Terms


@dataclass(frozen=True)
class FileAdvice:
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


def answer(question: FileRequest) -> FileAdvice:
    """The answer to one question. A file that is wrong does not hide those that are right."""
    try:
        advice = question.terms.advice(question.file.read(), question.file.name)
    except PgdynoError as error:
        return FileAdvice(question.file.name, None, error.message, error.remedy)
    return FileAdvice(question.file.name, presentation.document(advice))


def require_sizes(files: Sequence[File], terms: Terms) -> None:
    """Refuse to size many servers without a size: volumes of 1 GiB would be the cheapest. :class:`InputError`."""
    without = [file.name for file in files if terms.size_of(file.name) is None and terms.bought is None]
    if without:
        raise InputError(
            f"{len(without)} of {len(files)} files have no size: how much must fit is in none of them, {without[0]}",
            remedy="add --size 500GiB for all, and --size 'db7*=2TiB' for each that is another one",
            code="size.fleet.no_sizes",
            data={"files": len(files), "without": without},
        )


def total_usd_per_month(answers: Sequence[FileAdvice]) -> float | None:
    """What the cheapest of all that have a price cost together; None where none has one."""
    prices = [_price(answer) for answer in answers]
    known = [price for price in prices if price is not None]
    return round(sum(known), 2) if known else None


def _price(advice: FileAdvice) -> float | None:
    return None if advice.cheapest is None else advice.cheapest["usd_per_month"]


def left_out(answers: Sequence[FileAdvice]) -> list[tuple[str, str]]:
    """The files that the total does not have, and why."""
    results = []
    for answer in answers:
        if answer.error:
            results.append((answer.name, answer.error))
        elif answer.cheapest is None:
            results.append((answer.name, "no volume carries it"))
        elif _price(answer) is None:
            results.append((answer.name, f"{answer.cheapest['spec']} has no price in the catalogue"))
    return results


def text(answers: Sequence[FileAdvice], width: int | None = None) -> str:
    """A line for each, and the total; a table of at most ``width`` columns."""
    head = ("FILE", "IOPS", "MIB/S", "CHEAPEST VOLUME", "A MONTH")
    rows = [_row(answer) for answer in answers]
    missing = left_out(answers)
    label = f"all {len(answers)}" if not missing else f"{len(answers) - len(missing)} of {len(answers)}"
    last = (label, "", "", "", money(total_usd_per_month(answers)))
    why = [f"{name}: not in the total: {reason}" for name, reason in missing]
    why += [f"{answer.name}: {sentence}" for answer in answers if (sentence := _capped(answer)) is not None]
    return "\n".join([*fitted([head, *rows, last], width, (0, 3)), *([""] if why else []), *why])


def _capped(advice: FileAdvice) -> str | None:
    """That a recording stood at its limit, so that its row is the least."""
    result = None if advice.document is None else advice.document["demand"]["capped"]
    return None if result is None else str(result["first"])


def _row(advice: FileAdvice) -> tuple[str, ...]:
    if advice.document is None:
        return (advice.name, *[UNKNOWN] * 4)
    demand, best = advice.document["demand"], advice.cheapest
    least = "" if demand["capped"] is None else ">= "
    return (
        advice.name,
        least + number(demand["needed_iops"]),
        least + number(demand["needed_mib_per_s"]),
        UNKNOWN if best is None else best["spec"],
        money(_price(advice)),
    )


def total(answers: Sequence[FileAdvice]) -> dict[str, Any]:
    """All as one document."""
    missing = left_out(answers)
    return {
        "schema_version": presentation.SCHEMA_VERSION,
        "files": [
            {
                "name": answer.name,
                "advice": answer.document,
                "error": answer.error or None,
                "remedy": answer.remedy or None,
            }
            for answer in answers
        ],
        "total": {
            "files": len(answers),
            "counted": len(answers) - len(missing),
            "left_out": [{"name": name, "why": why} for name, why in missing],
            "usd_per_month": total_usd_per_month(answers),
        },
    }
