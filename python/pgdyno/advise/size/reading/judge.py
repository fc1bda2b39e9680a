"""Which rows of a file are judged: those of the devices that were asked for.

A container's ``dm-3`` comes and goes, and its counters overflow when it does. What it shows is no reason to refuse what the
database's disk shows. Without a device that was named, every row may be the volume's, and every row is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from ....base.errors import InputError
from . import columns

TWICE = "size.device.twice"
"""The code of the error about a device that an interval has twice, with different figures."""
_LISTED_MAX = 5
"""Damaged devices that a note names."""


class Judge:
    """Reads rows, refuses what is wrong in those that count, and remembers what is wrong in the others."""

    def __init__(self, wanted: Collection[str] = ()) -> None:
        self._wanted = frozenset(name.removeprefix("/dev/") for name in wanted)
        self._damaged: dict[str, str] = {}
        self._repeated: dict[str, str] = {}

    def counts(self, device: str) -> bool:
        """Whether the rows of a device matter."""
        return not self._wanted or device.removeprefix("/dev/") in self._wanted

    def row(
        self, device: str, names: Sequence[str], words: Sequence[object], where: str, *, is_interval: bool = True
    ) -> dict[str, float]:
        """The cells of a row. :class:`InputError` where it is damaged or contradicts itself, of a device that counts."""
        try:
            cells = columns.row(names, words, where)
            columns.figures_of(names, words).require_agreement(where, is_interval=is_interval)
        except InputError as error:
            if self.counts(device):
                if self._wanted:
                    raise
                raise InputError(
                    error.message,
                    remedy=f"{error.remedy}; if {device} is not the volume, name the one that is: --device NAME",
                    code=error.code,
                    data={**error.data, "device": device},
                ) from error
            self._damaged.setdefault(device, where)
            return {}
        return cells

    def text_row(
        self, names: Sequence[str], words: Sequence[str], where: str, *, may_be_cut: bool, is_interval: bool = True
    ) -> tuple[str, dict[str, float]] | None:
        """A device and its cells, of a line. ``None`` where the line was cut off, or begins another table.

        :class:`InputError` as of :meth:`row`, and when cells are missing in the middle of a file: the device would seem to
        have been idle.
        """
        place = columns.device_column(names)
        if len(words) != len(names):
            if may_be_cut or not columns.has_numbers(words):
                return None
            device = words[0] if place == 0 else words[-1]
            if not self.counts(device):
                self._damaged.setdefault(device, where)
                return device, {}
            raise InputError(
                f"{where}: {len(words)} cells below {len(names)} columns",
                remedy="remove the damaged interval, or measure again",
                code="size.row.cells",
                data={"where": where, "cells": len(words), "columns": len(names)},
            )
        pairs = [pair for at, pair in enumerate(zip(names, words, strict=True)) if at != place]
        device = words[place]
        row = self.row(device, [name for name, _ in pairs], [word for _, word in pairs], where, is_interval=is_interval)
        return device, row

    def repeated(self, device: str, where: str) -> None:
        """Remember that an interval has a device twice, with the same figures."""
        self._repeated.setdefault(device, where)

    def notes(self) -> list[str]:
        """What a reader must know of rows that were not used."""
        notes = []
        if self._damaged:
            named = [f"{device} ({where})" for device, where in list(self._damaged.items())[:_LISTED_MAX]]
            more = len(self._damaged) - len(named)
            notes.append(
                f"rows of devices that were not asked for are damaged and were not judged: {', '.join(named)}"
                + (f" and {more} more" if more else "")
            )
        notes += [
            f"{device} is in an interval twice with the same figures ({where}); it counts once"
            for device, where in self._repeated.items()
            if self.counts(device)
        ]
        return notes


@dataclass
class IntervalTable:
    """What one interval says of each device."""

    cells: dict[str, dict[str, float]] = field(default_factory=dict)
    """The cells of each device by column."""
    places: dict[str, str] = field(default_factory=dict)
    """Where each device was found."""

    def add(self, judge: Judge, device: str, row: dict[str, float], where: str) -> None:
        """Add the cells of a device. :class:`InputError` where it has others already, which one of two rows must be wrong for."""
        known = self.cells.setdefault(device, {})
        both = known.keys() & row.keys()
        if both and judge.counts(device):
            if any(known[name] != row[name] for name in both):
                raise InputError(
                    f"{where}: {device} is in this interval twice, with other figures than at {self.places[device]}",
                    remedy="give the output of one run, or remove one of the two rows",
                    code=TWICE,
                    data={"device": device, "where": where, "first": self.places[device]},
                )
            judge.repeated(device, where)
        known.update(row)
        self.places.setdefault(device, where)
