"""Links and navigation of the site, without the generator of its pages."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import reference
from tools.site import CONTENTS, examine, navigation, stage

URL = "https://example.org/x"
RULES = [
    ("docs/guide/run.md", "[a](../start.md#one)", "[a](../start.md#one)"),
    ("docs/guide/run.md", "[a](../../README.md)", "[a](../index.md)"),
    ("docs/guide/run.md", "[a](../README.md)", "[a](../documentation.md)"),
    ("docs/guide/run.md", "[a](../../catalog/README.md#b)", f"[a]({URL}/blob/c0ffee/catalog/README.md#b)"),
    ("docs/README.md", "[`s/`](../schema)", f"[`s/`]({URL}/tree/c0ffee/schema)"),
    ("README.md", "![a](docs/picture/demo.svg)", "![a](picture/demo.svg)"),
    ("README.md", "[a](docs/README.md), [b](#here)", "[a](documentation.md), [b](#here)"),
    ("README.md", "[a](https://example.com/x)", "[a](https://example.com/x)"),
    ("README.md", "`[a](STYLE.md)`", "`[a](STYLE.md)`"),
    ("README.md", "<!-- for the generator -->", ""),
    ("README.md", "```\n[a](STYLE.md)\n```", "```\n[a](STYLE.md)\n```"),
]


@pytest.mark.parametrize(("source", "text", "expected"), RULES)
def test_links_lead_to_pages_and_to_the_commit(repository: Path, source: str, text: str, expected: str) -> None:
    assert stage.rewrite(text, source, repository, URL, "c0ffee").strip() == expected


def test_without_an_address_a_link_to_a_file_is_its_text(repository: Path) -> None:
    text = stage.rewrite("[the style](STYLE.md), [a](docs/start.md)", "README.md", repository, None, "HEAD")
    assert text == "the style, [a](start.md)\n"


def test_the_table_of_contents_is_the_navigation() -> None:
    text = """
[Start](start.md), [again](start.md#two)
## Guides: how to
| volumes | [Compare](guide/compare.md), [x](../schema) |
## How it works
[Development](guide/development.md)
- **The model**: [a](concept/a.md), [once](start.md)
- **[B](concept/b.md)**: a page
**Records**: measured.
- [F](reference/f.md)
"""
    assert navigation.read(text) == [
        {"Start": ["index.md", "documentation.md", "start.md"]},
        {"Guides": ["guide/compare.md"]},
        {
            "How it works": [
                "guide/development.md",
                {"The model": ["concept/a.md"]},
                "concept/b.md",
                {"Records": ["reference/f.md"]},
            ]
        },
    ]


def test_the_table_of_contents_names_every_document(repository: Path) -> None:
    nav = navigation.read((repository / CONTENTS).read_text(encoding="utf-8"))
    assert navigation.missing(repository, nav) == []
    sections = [section for item in nav for section in item.values()]
    groups = [group for section in sections for entry in section if isinstance(entry, dict) for group in entry.items()]
    assert [name for name, pages in groups if not pages] == []


def test_a_document_that_is_not_named_is_found(tmp_path: Path) -> None:
    for name in ("README.md", "start.md", "guide/lost.md"):
        path = tmp_path / "docs" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("# x\n", encoding="utf-8")
    nav = navigation.read("[Start](start.md)")
    assert navigation.missing(tmp_path, nav) == sorted({"docs/guide/lost.md", *reference.paths()})


BROKEN = [
    ('<a href="gone.html">', "page.html: gone.html does not exist"),
    ('<a href="other.html#gone">', "page.html: other.html#gone has no such heading"),
    ('<script src="https://example.org/a.js">', "page.html loads https://example.org/a.js, which is on another host"),
    ('<link rel="icon" href="//example.org/i">', "page.html loads //example.org/i, which is on another host"),
]


@pytest.mark.parametrize(("element", "problem"), BROKEN)
def test_what_is_wrong_with_a_page_is_found(tmp_path: Path, element: str, problem: str) -> None:
    (tmp_path / "other.html").write_text('<h1 id="here">x</h1>', encoding="utf-8")
    (tmp_path / "page.html").write_text(element, encoding="utf-8")
    assert examine.problems(tmp_path) == [problem]


def test_a_font_of_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.css").write_text("@font-face { src: url(https://example.org/f.woff2) }", encoding="utf-8")
    assert examine.problems(tmp_path) == ["a.css loads https://example.org/f.woff2, which is on another host"]


def test_a_page_that_is_right_has_no_problem(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<h1 id="here"></h1>', encoding="utf-8")
    page = '<a href="./#here"></a><a href="https://example.org/"></a><link rel="canonical" href="https://example.org/">'
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    assert examine.problems(tmp_path) == []
