"""A data set that ``pgdyno data generate`` makes as files: its tables, how large they are, and how they are loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

GZIP_SHARE = 0.46
"""What gzip leaves of generated files at most: 0.44 of imdb's at scale 0.01, 0.451 of tpch's at scale 1."""
_ROUNDING = 1e-6
"""How far from a multiple of the step a number may be that was meant to be one."""


@dataclass(frozen=True)
class GeneratedSet:
    """What a load has to know of it."""

    name: str
    """As ``pgdyno data generate`` calls it."""
    files: Mapping[str, str]
    """Table -> the file that is loaded into it, without its suffix."""
    bytes_at_1: Mapping[str, float]
    """Table -> bytes of its file at scale 1, about; it only feeds estimates."""
    scale_most: float
    definitions: Callable[[Sequence[str], float], str]
    """SQL that makes tables for a scale."""
    scale_step: float | None = None
    """The least scale, of which all others are multiples. None: any above 0."""
    seeded: bool = True
    """Whether its values derive from a seed."""
    engine_options: tuple[str, ...] = ()
    """Options that make the files such that COPY takes them."""
    memory_bytes: int = 0
    """Memory for making the files, beside the files."""
    loaded_as: Mapping[str, Any] = field(default_factory=dict)
    """Fields of :class:`pgdyno.loader.Asked` that the files need."""

    def input_bytes(self, tables: Iterable[str], scale: float) -> int:
        """Bytes of the tables' files before any compression, about."""
        return round(sum(self.bytes_at_1[table] for table in tables) * scale)

    def tables_of(self, files: Iterable[str]) -> list[str]:
        """The tables of files, named with or without their suffixes; of all files if there are none."""
        named = {name.removesuffix(".gz").removesuffix(".tbl").removesuffix(".tsv") for name in files}
        return [table for table, file in self.files.items() if not named or file in named]

    def arguments(
        self, scale: float, out: Path, files: Iterable[str] = (), *, seed: int | None = None, gzip: bool = False
    ) -> list[str]:
        """What ``pgdyno-engine generate`` is asked for. A ``seed`` is left out where no value derives from one."""
        texts = [f"--scale={scale!r}", f"--out={out}", *(f"--file={name}" for name in files)]
        texts += [f"--seed={seed}"] if self.seeded else []
        return texts + (["--gzip"] if gzip else [])

    def refusal(self, scale: float) -> str | None:
        """Why there is no such scale; None where there is."""
        if scale > self.scale_most:
            return f"scale = {scale:g}: {self.name} is made at up to {self.scale_most:g}"
        steps = 1 if self.scale_step is None else scale / self.scale_step
        if round(steps) >= 1 and abs(steps - round(steps)) < _ROUNDING:
            return None
        return f"scale = {scale:g}: {self.name} is made at multiples of {self.scale_step:g}"
