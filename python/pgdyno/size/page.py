"""The advice as one HTML file that needs nothing else, in the dress of the reports."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pgdyno import __version__
from pgdyno.errors import HostError
from pgdyno.report.page import WIDTHS_PX
from pgdyno.report.theme import DARK, LIGHT, PAGE, colour_classes, custom_properties, svg_of
from pgdyno.size import words
from pgdyno.size.course import course

if TYPE_CHECKING:
    from pgdyno.size.advice import Advice


def write_page(advice: Advice, path: Path) -> None:
    """Write the page to ``path``, over what was there. :class:`HostError` when it cannot be written."""
    text = html(advice)
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise HostError(f"{path} cannot be written: {error.strerror or error}", remedy="name another --html") from error


def html(advice: Advice) -> str:
    """The page as text."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.ChoiceLoader([jinja2.PackageLoader("pgdyno.size"), jinja2.PackageLoader("pgdyno.report")]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = environment.loader.get_source(environment, "page.css")[0] if environment.loader else ""
    return environment.get_template("size.html").render(
        advice=advice,
        words=words,
        headline=words.headline(advice),
        instance_rows=[words.instance_row(one) for one in advice.instances],
        drawing=_drawing(advice),
        light=custom_properties(LIGHT),
        dark=custom_properties(DARK),
        style=f"{colour_classes()}\n{style}",
        version=__version__,
    )


def _drawing(advice: Advice) -> Any:
    import markupsafe

    draw = partial(course, advice.demand, theme=PAGE)
    parts = [
        f'<div class="drawing {size}">{svg_of(draw(width), f"course-{size}", "The load over time")}</div>'
        for size, width in WIDTHS_PX.items()
    ]
    return markupsafe.Markup("".join(parts))  # noqa: S704 (drawn by vl_convert, which escapes text)
