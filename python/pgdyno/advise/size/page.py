"""The advice as one HTML file that needs nothing else, in the dress of the reports."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from pgdyno import __version__
from pgdyno.report.render import drawing, rendered, write_whole

from . import words
from .advice import Advice
from .course import course


def write_page(advice: Advice, path: Path) -> None:
    """Write the page to ``path``, over what was there. :class:`pgdyno.base.errors.OutputError` when that fails."""
    write_whole(path, html(advice).encode(), "--html")


def html(advice: Advice) -> str:
    """The page as text."""
    return rendered(
        "size.html",
        "pgdyno.advise.size",
        advice=advice,
        words=words,
        headline=words.headline(advice),
        instance_rows=[words.instance_row(instance) for instance in advice.instances],
        drawing=drawing("course", "The load over time", partial(course, advice.demand)),
        version=__version__,
    )
