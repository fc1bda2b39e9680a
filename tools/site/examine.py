"""What the pages of a built site hold: links that lead nowhere, and what a browser would ask another host for."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADED_LINKS = {"stylesheet", "icon", "preconnect", "preload", "prefetch", "modulepreload", "dns-prefetch", "manifest"}
"""``rel`` of the ``<link>`` elements that make a browser ask; others, as ``canonical``, are only said."""
_STYLE_URL = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)")
ERROR_PAGE = "404.html"
"""Served for any address, so its links begin with a slash."""


class _Page(HTMLParser):
    """One page: its anchors, where it leads, and what it loads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element says."""
        has = {name: value or "" for name, value in attrs}
        self.anchors |= {has[name] for name in ("id", "name") if name in has}
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        elif tag == "link" and _LOADED_LINKS & set(has.get("rel", "").split()):
            self.loaded.append(has.get("href", ""))
        elif "src" in has:
            self.loaded.append(has["src"])


def problems(site: Path) -> list[str]:
    """Why the site must not be given to others; empty when nothing is wrong."""
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    problems = []
    for path, page in pages.items():
        name = path.relative_to(site)
        for target in page.loaded:
            if _host(target):
                problems.append(f"{name} loads {target}, which is on another host")
        if name.name == ERROR_PAGE:
            continue
        for target in page.links + page.loaded:
            if why := _dead(path, target, pages):
                problems.append(f"{name}: {target} {why}")
    for path in sorted(site.rglob("*.css")):
        for target in _STYLE_URL.findall(path.read_text(encoding="utf-8")):
            problems.append(f"{path.relative_to(site)} loads {target}, which is on another host")
    return problems


def _host(target: str) -> bool:
    return urlsplit(target).netloc != ""


def _dead(path: Path, target: str, pages: dict[Path, _Page]) -> str | None:
    """What is wrong with a link inside of the site."""
    parts = urlsplit(target)
    if parts.scheme or parts.netloc:
        return None
    goal = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if goal.is_dir():
        goal /= "index.html"
    if not goal.is_file():
        return "does not exist"
    if parts.fragment and goal in pages and unquote(parts.fragment) not in pages[goal].anchors:
        return "has no such heading"
    return None
