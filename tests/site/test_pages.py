"""The site, built and opened in a headless Chromium from a server on loopback."""

from __future__ import annotations

import functools
import http.server
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from tests.analysis.synthetic import CREATED_UNIX_NS, GP3, Plan, make_experiment
from tests.report import chromium
from tools.site import __main__ as site
from tools.site import reports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEMO = ("gp3", "gp3:iops=8000", "io2bx:iops=8000")
PAGES = (
    "index.html",
    "documentation.html",
    "guide/install.html",
    "reference/settings.html",
    "concept/volume/burst_credit.html",
)
WIDTH = "document.documentElement.scrollWidth"
GROUND = "getComputedStyle(document.body).backgroundColor"
FOCUS = """(() => { let one = document.activeElement
    while (one.shadowRoot && one.shadowRoot.activeElement) one = one.shadowRoot.activeElement
    return one.className + ' ' + (one.getAttribute('href') || '') + ' ' + (one.getAttribute('role') || '') })()"""
BLANK_HEADS = """[...document.querySelectorAll('article thead')].filter(one => !one.innerText.trim() && one.offsetHeight).length"""
TABS = 60
"""So many presses of Tab lead through the head and the navigation of a page."""
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


def recorded(results: Path) -> Path:
    """Results of the demonstration, of an older and of another comparison, and of a sweep."""
    for number, volumes in enumerate((DEMO, DEMO, ("gp3", "io2bx"))):
        arms = tuple(replace(GP3, spec=volume) for volume in volumes)
        make_experiment(results, Plan(arms=arms, created_unix_ns=CREATED_UNIX_NS + number, measure_s=20))
    names, clients = ("world.volume", "workload.clients"), ("8", "16", "32")
    arms = tuple(
        replace(GP3, tps=200.0 * number, factors=tuple(zip(names, ("gp3", count), strict=True)), name=f"gp3 · {count}")
        for number, count in enumerate(clients, 2)
    )
    factors = ((names[0], ("gp3",)), (names[1], clients))
    sweep = Plan(arms=arms, factors=factors, replicates=1, measure_s=20)
    make_experiment(results, sweep)
    return results


def test_the_newest_demonstration_and_sweep_are_taken_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert reports.write(tmp_path / "none", tmp_path / "docs") == []
    assert list((tmp_path / "docs").iterdir()) == []
    results = recorded(tmp_path / "results")
    assert reports.write(results, tmp_path / "docs") == [{"Reports": ["reports.md"]}]
    text = (tmp_path / "docs" / "reports.md").read_text(encoding="utf-8")
    demos = sorted(path.name for path in results.iterdir())[:2]
    assert demos[1] in text and demos[0] not in text
    assert {path.name for path in (tmp_path / "docs" / "reports").glob("*.html")} == {"demo.html", "sweep.html"}


@pytest.fixture(scope="module")
def address(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The site, built from the documents, on loopback."""
    if not site.ZENSICAL.exists():
        pytest.skip("needs Zensical, which `make site` installs")
    folder = tmp_path_factory.mktemp("site") / "site"
    results = recorded(tmp_path_factory.mktemp("results"))
    assert site.build(repository, folder, results) == []
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.needs_chromium
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width_px", [1280, 320])
@pytest.mark.parametrize("name", PAGES)
def test_page(browser: chromium.Browser, address: str, name: str, width_px: int, dark: bool) -> None:
    page = browser.open(f"{address}/{name}", width_px, dark, (WIDTH, GROUND, BLANK_HEADS))
    assert page.complaints == []
    assert [request for request in page.requests if not request.startswith((f"{address}/", "data:"))] == []
    assert page.values[WIDTH] <= width_px
    assert page.values[BLANK_HEADS] == 0, "a table without heads begins with its first row"
    assert (page.values[GROUND] != "rgb(255, 255, 255)") is dark


@pytest.mark.needs_chromium
def test_the_reports_are_pages(browser: chromium.Browser, address: str) -> None:
    for name in ("demo", "sweep"):
        page = browser.open(f"{address}/reports/{name}.html", 1280, True, ("document.title", WIDTH, GROUND))
        assert page.complaints == []
        assert [request for request in page.requests if not request.startswith((f"{address}/", "data:"))] == []
        assert page.values[WIDTH] <= 1280
        assert page.values[GROUND] != "rgb(255, 255, 255)"
    links = "[...document.querySelectorAll('article a')].map(one => one.getAttribute('href'))"
    page = browser.open(f"{address}/reports.html", 1280, False, (links,))
    assert {"reports/demo.html", "reports/sweep.html"} <= set(page.values[links])


@pytest.mark.needs_chromium
def test_the_keyboard_reaches_search_and_navigation(browser: chromium.Browser, address: str) -> None:
    page = browser.open(f"{address}/index.html", 1280, False, (), keys=("Tab",) * TABS, after_key=FOCUS)
    focused = page.values[FOCUS]
    assert any("md-nav__link" in item for item in focused), focused
    assert any("md-search__button" in item for item in focused), focused


@pytest.mark.needs_chromium
def test_search_finds_a_page(browser: chromium.Browser, address: str) -> None:
    page = browser.open(f"{address}/index.html", 1280, False, (SEARCH,))
    assert page.values[SEARCH] == "/concept/volume/burst_credit.html"
    assert page.complaints == []
