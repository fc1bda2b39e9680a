"""Colours and shapes of the figures, and what turns a drawn figure into a part of a page.

A figure on a page takes its colours from the page's custom properties, so one drawing serves light and dark; a PNG gets
the light colours themselves. The colours of the arms stay apart for colour-blind readers (after Okabe and Ito).
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import Any

from ..base.text import printable

ARMS_LIGHT = ("#b8500c", "#0a66a8", "#00785a", "#a04a7d", "#7a6200", "#4b4ba3")
ARMS_DARK = ("#f0955a", "#5db3ec", "#3fc49c", "#e39bc6", "#dfc04f", "#a9a6ee")
WAITS_LIGHT = (
    "#3f8f5b", "#2f6690", "#b8500c", "#b3261e", "#8f5aa3", "#c79a2e", "#9aa0a6", "#5c6bc0", "#6d4c41",
)  # fmt: skip
WAITS_DARK = (
    "#6cc795", "#6ea6d0", "#f0955a", "#ef7a6d", "#bd8fd0", "#dfc04f", "#767d85", "#9fa8da", "#bcaaa4",
)  # fmt: skip
"""Of :data:`pgdyno.report.server.TYPES`, in that order."""

LIGHT = {
    "ground": "#fbfbf9",
    "panel": "#ffffff",
    "ink": "#1b1d20",
    "quiet": "#5a6068",
    "line": "#dcdedb",
    "grid": "#e8e9e6",
    "good": "#1f6f43",
    "warn": "#8a5a00",
    "bad": "#b3261e",
    **{f"arm{place}": colour for place, colour in enumerate(ARMS_LIGHT)},
    "role0": "#2f6690",
    "role1": "#c77d2e",
    "role2": "#3a8f8f",
    "role3": "#8f5aa3",
    "role4": "#5b8c5a",
    "role5": "#9aa0a6",
    "role6": "#c0392b",
    "role7": "#ecedea",
    "role8": "#c9cbc6",
    **{f"wait{place}": colour for place, colour in enumerate(WAITS_LIGHT)},
}
DARK = {
    "ground": "#15171a",
    "panel": "#1b1e22",
    "ink": "#e6e7e4",
    "quiet": "#9ea5ad",
    "line": "#343940",
    "grid": "#2a2e34",
    "good": "#6cc795",
    "warn": "#e0b050",
    "bad": "#f28b82",
    **{f"arm{place}": colour for place, colour in enumerate(ARMS_DARK)},
    "role0": "#6ea6d0",
    "role1": "#e0a25c",
    "role2": "#6cbcbc",
    "role3": "#bd8fd0",
    "role4": "#86bd85",
    "role5": "#767d85",
    "role6": "#ef7a6d",
    "role7": "#272b30",
    "role8": "#454b52",
    **{f"wait{place}": colour for place, colour in enumerate(WAITS_DARK)},
}


@dataclass(frozen=True)
class Theme:
    """Where a figure takes its colours from."""

    colours: dict[str, str]

    def __getitem__(self, name: str) -> str:
        return self.colours[name]

    def arm(self, index: int) -> str:
        """Colour of an arm by its :func:`~pgdyno.report.section.colour_index`."""
        return self.colours[f"arm{index}"]

    def config(self) -> dict[str, Any]:
        """Vega-Lite's configuration: quiet axes, no frames, the arms' lines in front."""
        axis = {
            "domain": False,
            "ticks": False,
            "gridColor": self["grid"],
            "labelColor": self["quiet"],
            "titleColor": self["quiet"],
            "labelFontSize": 11,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "labelPadding": 6,
        }
        return {
            "font": "Liberation Sans, Arial, sans-serif",
            "background": "transparent",
            "view": {"stroke": None},
            "axis": axis,
            "text": {"color": self["ink"], "fontSize": 12},
            "title": {
                "color": self["ink"],
                "fontSize": 12,
                "fontWeight": "bold",
                "anchor": "start",
                "frame": "group",
                "offset": 8,
                "subtitleColor": self["quiet"],
                "subtitleFontSize": 11,
            },
        }


PAGE = Theme({name: f"var(--{name})" for name in LIGHT})
"""For figures inside the page."""
PAPER = Theme(LIGHT)
"""For a PNG."""


def custom_properties(colours: dict[str, str]) -> str:
    """The colours as declarations of CSS custom properties."""
    return " ".join(f"--{name}: {value};" for name, value in colours.items())


def colour_classes() -> str:
    """Classes ``arm0``, ``role0``, ``wait0``, ... that fill an element with the colour of that name."""
    names = [name for name in LIGHT if name.startswith(("arm", "role", "wait"))]
    return "\n".join(f".{name} {{ background: var(--{name}); }}" for name in names)


def svg_of(specification: dict[str, Any], name: str, title: str) -> str:
    """Draw a Vega-Lite specification as an SVG element for a page.

    ``name`` makes its ids unique in the page; ``title`` is what a screen reader says. A mark's description becomes the
    text that appears when a pointer rests on it. :class:`~pgdyno.base.errors.PgdynoError` when it cannot be drawn.
    """
    from pgdyno.report.draw import svg

    drawn = svg(specification)
    # The renderer counts ids over the life of the process; renumbered, equal records make equal pages.
    for number, fromkey in enumerate(dict.fromkeys(re.findall(r'\bid="([^"]+)"', drawn))):
        drawn = drawn.replace(f'id="{fromkey}"', f'id="{name}-{number}"').replace(
            f"url(#{fromkey})", f"url(#{name}-{number})"
        )
    drawn = re.sub(r'<path aria-label="([^"]*)"([^>]*)/>', r"<path\2><title>\1</title></path>", drawn)
    drawn = re.sub(r'<text aria-label="[^"]*"', "<text", drawn)
    drawn = re.sub(r' (?:role|aria-roledescription|aria-hidden|aria-label)="[^"]*"', "", drawn)
    drawn = re.sub(r' font-family="[^"]*"', "", drawn)
    drawn = re.sub(r' xmlns(?::xlink)?="[^"]*"', "", drawn)
    drawn = re.sub(r"<path class=\"(?:background|foreground)\"[^>]*(?:d=\"\"|d=\"M0,0h0v0h0Z\")[^>]*/>", "", drawn)
    drawn = re.sub(r' pointer-events="none"| stroke-miterlimit="10"| version="1.1"', "", drawn)
    # Coordinates alone, which are attributes: a figure in a text keeps its digits.
    drawn = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), drawn)
    return drawn.replace("<svg", f'<svg role="img" aria-label="{html.escape(printable(title))}"', 1)


def png_of(specification: dict[str, Any], background: str, scale: float = 2.0) -> bytes:
    """Draw a Vega-Lite specification as a PNG on a ground; errors as :func:`svg_of`."""
    from pgdyno.report.draw import png

    config = {**specification.get("config", {}), "background": background}
    return png({**specification, "config": config}, scale)
