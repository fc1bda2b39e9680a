"""Pages without pictures, for tests that read their words: drawing one page takes a second of CPU.

What is drawn is made as always, for one of a page's widths; only its conversion to SVG and PNG is left out. Tests of pictures are
marked with ``drawn``.
"""

from __future__ import annotations

import base64
import contextlib
from types import SimpleNamespace
from typing import Any

_PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""One pixel."""


def _svg(specification: dict[str, Any]) -> str:
    del specification
    return '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'


def _png(specification: dict[str, Any], scale: float) -> bytes:
    del specification, scale
    return _PNG


NONE: dict[str, Any] = {"pgdyno.report.draw": SimpleNamespace(svg=_svg, png=_png, kept=contextlib.nullcontext)}
"""Modules that convert -> what stands in their place."""
ONE_WIDTH = {"wide": 1000}
"""In the place of ``WIDTHS_PX`` of :mod:`pgdyno.report.render`."""
