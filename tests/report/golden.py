"""The golden reports: what every writer says of a fixed set of made-up results, kept as text in ``golden/``.

::

    .venv/bin/python -m tests.report.golden    write them again

A page is kept as its text, a line for each block, with its drawings as their names and titles: shapes and colours are looked at
in a browser. Rows that only repeat others (made-up settings, checks that found nothing, arms of the JSON beyond the second) are
dropped. Floating-point numbers are rounded, because libraries differ in the last digits.
"""

from __future__ import annotations

import json
import re
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.compare import Comparison, against, summarise
from pgdyno.report import document, render, table
from pgdyno.report.against import html as html_against
from pgdyno.report.export import markdown, runs_csv
from pgdyno.report.page import html
from pgdyno.results.record import DriverRecord, PriceRecord
from tests.analysis.synthetic import (
    CREATED_UNIX_NS,
    GP3,
    GP3_WAITS,
    IO2BX,
    IO2BX_WAITS,
    REAL,
    Plan,
    factorial,
    make_experiment,
)
from tests.bulk_load.made import make_loads

from .sweeps import swept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FOLDER = Path(__file__).parent / "golden"
DIGITS = 6
ARMS_MAX = 2
"""In the JSON: its arms have the same fields."""
PAIRS_MAX = 3
"""Likewise."""
_REPEATED = re.compile(r"\bsetting_\d+\b|\| \d+ \| [a-z' ]+ \| ok \|")
_BLOCKS = {"p", "li", "h1", "h2", "h3", "h4", "tr", "dt", "dd", "figcaption", "pre", "summary", "title", "section"}
_DRIVER = DriverRecord(
    engine="native", threads=2, cpu_ns=10**9, elapsed_ns=20 * 10**9, transactions=10_000, connect_ms=41.5, retries=3
)


def _compare(root: Path) -> Comparison:
    """Two volumes, one with a WAL volume, waits, statements, an open loop, prices at equal size."""
    price = PriceRecord(usd_per_gib_month=0.08, limits_follow_size=False)
    log = replace(IO2BX, spec="io2bx:size=10GiB,iops=16000", read_ms=0.4, write_ms=0.36, usd_per_month=1041.2)
    arms = (
        replace(
            GP3,
            waits=GP3_WAITS,
            driver=_DRIVER,
            service_share=0.5,
            statements=("BEGIN", "UPDATE a SET b = 1"),
            price=price,
        ),
        replace(IO2BX, waits=IO2BX_WAITS, size_gib=200, others=(("wal", log),), service_share=0.5, queries=7, failed=3),
    )
    return summarise(make_experiment(root, Plan(arms=arms, measure_s=20)))


def _sixteen(root: Path) -> Comparison:
    return summarise(make_experiment(root, factorial(replicates=2, measure_s=20)))


def _hindered(root: Path) -> Comparison:
    """An arm that the host hindered, one slowed in an instance with limits, a missing run."""
    arms = (
        replace(GP3, other_share=0.6),
        replace(IO2BX, dilation=4, instance_above_iops=0.4, waits=IO2BX_WAITS),
        replace(GP3, spec="gp2:size=100GiB", kind="gp2", burst_iops=3000, iops_limit=300, storage_only=True),
    )
    return summarise(make_experiment(root, Plan(arms=arms, replicates=2, measure_s=20, missing=frozenset({(2, 2)}))))


CASES: dict[str, Callable[[Path], Comparison]] = {
    "compare": _compare,
    "sixteen": _sixteen,
    "hindered": _hindered,
    "real": lambda root: summarise(make_experiment(root, Plan(arms=(REAL,), replicates=1, measure_s=20))),
    "loads": lambda root: summarise(make_loads(root)),
    "sweep": lambda root: swept(root, clients=(1, 2, 4, 8), counts=(10, 20, 30)),
}
"""Name of a result -> what makes it below a folder."""


def texts(name: str, root: Path) -> dict[str, str]:
    """Name of a golden file -> what it must hold, of one case."""
    comparison = CASES[name](root)
    with _named_drawings():
        made = {"html": text_of(html(comparison))}
        if name == "compare":
            later = Plan(arms=(GP3, IO2BX), measure_s=20, seed=8, created_unix_ns=CREATED_UNIX_NS + 86_400 * 10**9 + 1)
            other = summarise(make_experiment(root, later))
            made["against.html"] = text_of(html_against(against(comparison, other)))
    made |= {
        "terminal": table(comparison),
        "md": markdown(comparison),
        "csv": runs_csv(comparison),
        "json": _json(comparison),
    }
    return {f"{name}.{kind}.txt": _without_trailing_blanks(text) for kind, text in made.items()}


def _json(comparison: Comparison) -> str:
    made = json.loads(document(comparison).model_dump_json())
    made["arms"], made["pairs"] = made["arms"][:ARMS_MAX], made["pairs"][:PAIRS_MAX]
    return json.dumps(_rounded(made), indent=1, ensure_ascii=False)


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = [""]
        self._silent = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent = self._silent or tag == "style"
        if tag in _BLOCKS:
            self.lines.append(f"[{tag}] ")
        elif tag in ("td", "th", "span"):
            self.lines[-1] += " | "
        label = dict(attrs).get("aria-label")
        if label is not None:
            self.lines.append(f"[drawing] {label}")

    def handle_endtag(self, tag: str) -> None:
        self._silent = self._silent and tag != "style"

    def handle_data(self, data: str) -> None:
        if not self._silent:
            self.lines[-1] += re.sub(r"\s+", " ", data)


def text_of(page: str) -> str:
    """The text of a page, a line for each block."""
    parser = _Text()
    parser.feed(page)
    lines = (re.sub(r"\s+", " ", line).strip() for line in parser.lines)
    return "\n".join(line for line in lines if line and not _REPEATED.search(line))


@contextmanager
def _named_drawings() -> Iterator[None]:
    """Pages whose drawings are their names and what is written above their panels."""
    drawn = render.svg_of
    render.svg_of = _named
    try:
        yield
    finally:
        render.svg_of = drawn


def _named(specification: dict[str, Any], name: str, title: str) -> str:
    from markupsafe import escape

    if not name.endswith("-wide"):
        return ""
    return f'<svg aria-label="{escape(title)} ({escape("; ".join(_titles(specification)))})"></svg>'


def _titles(part: Any) -> Iterator[str]:
    if isinstance(part, list):
        for each in part:
            yield from _titles(each)
    elif isinstance(part, dict):
        title = part.get("title")
        if isinstance(title, dict):
            title = title.get("text")
        if title:
            yield " ".join(title) if isinstance(title, list) else str(title)
        for name, each in part.items():
            if name in ("vconcat", "hconcat", "layer", "encoding", "x", "y", "axis"):
                yield from _titles(each)


def _rounded(part: Any) -> Any:
    if isinstance(part, dict):
        return {name: _rounded(each) for name, each in part.items()}
    if isinstance(part, list):
        return [_rounded(each) for each in part]
    return float(f"{part:.{DIGITS}g}") if isinstance(part, float) else part


def _without_trailing_blanks(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"


def main() -> None:
    """Write every golden file again."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        old.unlink()
    for name in CASES:
        with tempfile.TemporaryDirectory() as root:
            for file, text in texts(name, Path(root)).items():
                (FOLDER / file).write_text(text)


if __name__ == "__main__":
    main()
