"""The colours of the documents' pictures: one file serves light and dark."""

from __future__ import annotations

from collections.abc import Iterable

from pgdyno.report.theme import DARK, LIGHT


def schemes(names: Iterable[str]) -> str:
    """Declarations of the theme's colours of these names, for a style sheet inside of a picture."""
    names = tuple(names)
    light, dark = (" ".join(f"--{name}: {colours[name]};" for name in names) for colours in (LIGHT, DARK))
    return f"svg {{ {light} }}\n@media (prefers-color-scheme: dark) {{ svg {{ {dark} }} }}"
