"""The site, built and opened in a headless Chromium from a server on loopback."""

from __future__ import annotations

import functools
import http.server
import threading
from typing import TYPE_CHECKING

import pytest

from tests.report import chromium
from tools.site import __main__ as site

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = (
    "index.html",
    "documentation.html",
    "guide/install.html",
    "reference/settings.html",
    "concept/volume/burst_credit.html",
)
WIDTH = "document.documentElement.scrollWidth"
GROUND = "getComputedStyle(document.body).backgroundColor"
KEYBOARD = """['.md-search__button', '.md-nav--primary a.md-nav__link', '.md-nav--primary label.md-nav__link'].filter(one => {
    const found = document.querySelector(one); found.focus(); return document.activeElement !== found })"""
SEARCH = """(async () => {
    const inside = node => [...(node.shadowRoot ? inside(node.shadowRoot) : []),
        ...[...node.children].flatMap(child => [child, ...inside(child)])]
    const until = async find => { for (let frame = 0; frame < 1000; frame++) {
        const found = find(); if (found) return found
        await new Promise(requestAnimationFrame) } }
    document.querySelector('.md-search__button').click()
    const field = await until(() => inside(document.body).find(one => one.getAttribute('role') === 'combobox'))
    field.value = 'burst balance'
    field.dispatchEvent(new InputEvent('input', {bubbles: true, composed: true}))
    const first = await until(() => inside(document.body).find(one => one.tagName === 'A' && one.href.includes('?h=')))
    return new URL(first.href).pathname
})()"""


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def address(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site, built from the documents, on loopback."""
    if not site.ZENSICAL.exists():
        pytest.skip("needs Zensical, which `make site` installs")
    folder = tmp_path_factory.mktemp("site") / "site"
    assert site.build(repository, folder) == []
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[chromium.Browser]:
    executable = chromium.find()
    assert executable is not None
    with chromium.Browser(executable) as running:
        yield running


@pytest.mark.needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [1280, 320])
@pytest.mark.parametrize("name", PAGES)
def test_page(browser: chromium.Browser, address: str, name: str, width_px: int, dark: bool) -> None:
    page = browser.open(f"{address}/{name}", width_px, dark, (WIDTH, GROUND))
    assert page.complaints == []
    assert [asked for asked in page.requests if not asked.startswith((f"{address}/", "data:"))] == []
    assert page.values[WIDTH] <= width_px
    assert (page.values[GROUND] != "rgb(255, 255, 255)") is dark


@pytest.mark.needs_chromium
def test_search_finds_and_the_keyboard_reaches(browser: chromium.Browser, address: str) -> None:
    page = browser.open(f"{address}/index.html", 1280, False, (KEYBOARD, SEARCH))
    assert page.values[KEYBOARD] == []
    assert page.values[SEARCH] == "/concept/volume/burst_credit.html"
    assert page.complaints == []
