"""Rendering of a page: a template, drawings at three widths, one file that needs nothing else."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno.report.theme import DARK, LIGHT, PAGE, Theme, colour_classes, custom_properties, svg_of

from ..base import owner
from ..base.errors import OutputError, PgdynoError
from ..base.text import printable

if TYPE_CHECKING:
    import jinja2

WIDTHS_PX = {"wide": 1000, "medium": 640, "narrow": 342}
"""Widths that each figure is drawn for: a desktop, a tablet, and a phone of 390 px less its margins."""


def rendered(template: str, package: str = "pgdyno.report", **values: Any) -> str:
    """A package's template with its values, the style sheet and both colour schemes; what users wrote is escaped, and its control characters are not shown."""
    environment = _environment(package)
    assert environment.loader is not None
    style, _, _ = environment.loader.get_source(environment, "page.css")
    page = environment.get_template(template).render(
        **values,
        light=custom_properties(LIGHT),
        dark=custom_properties(DARK),
        style=f"{colour_classes()}\n{style}",
    )
    return printable(page)


@cache
def _environment(package: str) -> jinja2.Environment:
    """Where its templates are found; kept, because compiling those of a page takes a tenth of a second."""
    import jinja2

    loader = jinja2.ChoiceLoader([jinja2.PackageLoader(package), jinja2.PackageLoader("pgdyno.report")])
    made = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters["unbroken"] = _unbroken
    return made


_PER_CENT = re.compile(r"(?<=\d) %")


def _unbroken(sentence: str) -> str:
    """A sentence in which no line ends between a figure and its per cent sign."""
    return _PER_CENT.sub("\u00a0%", sentence)


def drawing(name: str, alternative: str, make: Callable[[int, Theme], dict[str, Any]]) -> Any:
    """A figure at each width; ``alternative`` is what a screen reader says.

    What users wrote is text inside the drawing, where the renderer escaped it. Where it cannot be drawn a note says why.
    """
    import markupsafe

    from pgdyno.report.draw import kept

    try:
        with kept():
            parts = [
                f'<div class="drawing {size}">{svg_of(make(width, PAGE), f"{name}-{size}", alternative)}</div>'
                for size, width in WIDTHS_PX.items()
            ]
    except PgdynoError as error:
        return markupsafe.Markup('<p class="note">{}</p>').format(f"{error.message[:1].upper()}{error.message[1:]}.")
    return markupsafe.Markup("".join(parts))  # noqa: S704 (drawn by vl_convert, which escapes text)


def moment(unix_ns: int) -> str:
    """An instant for people, to the minute."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(unix_ns // 1_000_000_000))


def write_whole(path: Path, content: bytes, flag: str = "--output") -> None:
    """Write a file whole or not at all; :class:`OutputError`, which names ``flag``, when it cannot be.

    A link stays one; ``/dev/stdout`` or a pipe is written to and not replaced.
    """
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return
        place = path.resolve()
        descriptor, unfinished = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            Path(unfinished).chmod(0o644)
            owner.give(Path(unfinished), replaces=place)
            Path(unfinished).replace(place)
        except BaseException:
            with contextlib.suppress(OSError):
                Path(unfinished).unlink()
            raise
    except OSError as error:
        raise OutputError(
            f"{path} cannot be written: {error.strerror}", remedy=f"name another file with {flag}"
        ) from error
