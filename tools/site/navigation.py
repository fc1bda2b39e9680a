"""The navigation of the site: sections, groups and pages, read from the table of contents."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tools import reference
from tools.site import CONTENTS
from tools.site.stage import linked_pages, page_of

FIRST = "Start"
"""The section of what stands before the first heading."""
_SECTION = re.compile(r"^## ([^:]+)")
_BOLD_PAGE = re.compile(r"^(?:- )?\*\*\[")
_GROUP = re.compile(r"^(?:- )?\*\*(.+?)\*\*")


def read(text: str) -> list[dict[str, Any]]:
    """Zensical's ``nav`` from the text of ``docs/README.md``.

    A heading of the second level begins a section, and bold text at the beginning of a line or of an item begins a group in
    it, unless it is a link: then it is a page of the section. A page is where it is linked first; its title is its own heading.
    """
    pages: list[Any] = [page_of("README.md"), page_of(CONTENTS)]
    seen = set(pages)
    section = pages
    nav: list[dict[str, Any]] = [{FIRST: section}]
    for line in text.splitlines():
        if match := _SECTION.match(line):
            section = pages = []
            nav.append({match[1]: section})
        elif _BOLD_PAGE.match(line):
            pages = section
        elif match := _GROUP.match(line):
            pages = []
            section.append({match[1]: pages})
        for page in linked_pages(line, CONTENTS):
            if page not in seen:
                seen.add(page)
                pages.append(page)
    return nav


def missing(root: Path, nav: list[dict[str, Any]]) -> list[str]:
    """Documents that the table of contents does not name."""
    named = set(_pages(nav))
    documents = {path.relative_to(root).as_posix() for path in (root / "docs").rglob("*.md")} | reference.paths()
    return [document for document in sorted(documents) if page_of(document) not in named]


def _pages(entry: Any) -> list[str]:
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, dict) else entry
    return [page for part in parts for page in _pages(part)]
