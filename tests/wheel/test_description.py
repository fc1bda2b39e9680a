"""The package's page: the README with links that work on a registry."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.wheel import description


def test_links_become_addresses_or_their_text() -> None:
    text = "<!-- a comment -->\n![p](a.svg) [x](docs/x.md#y) [z](https://z.example) [here](#here)\n```\n[x](y)\n```\n"
    assert description.absolute(text, "https://h.example/r", "abc") == (
        "![p](https://h.example/r/raw/abc/a.svg) [x](https://h.example/r/blob/abc/docs/x.md#y)"
        " [z](https://z.example) [here](#here)\n```\n[x](y)\n```\n"
    )
    assert description.absolute(text, None, "abc") == " x [z](https://z.example) [here](#here)\n```\n[x](y)\n```\n"


def test_the_address_is_the_publishers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("PGDYNO_REPOSITORY_URL", "GITHUB_SERVER_URL", "GITHUB_REPOSITORY"):
        monkeypatch.delenv(name, raising=False)
    written = "Name: x\n\n[a](b.md)\n"
    assert description.of_package(tmp_path, written, ["More: y"]) == "Name: x\nMore: y\n\na\n"
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://h.example")
    monkeypatch.setenv("GITHUB_REPOSITORY", "o/x")
    made = description.of_package(tmp_path, written, [])
    assert "Project-URL: Repository, https://h.example/o/x\n" in made
    assert made.endswith("[a](https://h.example/o/x/blob/HEAD/b.md)\n")
