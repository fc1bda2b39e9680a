"""The check of the package's page finds what a registry would refuse or show broken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lint.conftest import Project
from tools.lint import metadata
from tools.wheel import description

RIGHT = """\
[project]
name = "x"
readme = "README.md"
license = "Apache-2.0"
requires-python = ">=3.11"
classifiers = ["Programming Language :: Python :: 3.11", "Programming Language :: Python :: 3.12", "Typing :: Typed"]
[project.urls]
Source = "https://example.org/x"
"""


def found(project: Project, text: str, readme: str = "[a](docs/a.md)\n", typed: bool = True) -> list[str]:
    files = {"pyproject.toml": text, "README.md": readme, **({"python/x/py.typed": ""} if typed else {})}
    return [finding.message for finding in metadata.check(project(files))]


def test_a_package_that_is_right_has_no_finding(project: Project) -> None:
    assert found(project, RIGHT) == []


def test_what_does_not_agree_is_found(project: Project) -> None:
    assert "classifier of a licence" in found(project, RIGHT.replace('["Prog', '["License :: OSI Approved", "Prog'))[0]
    assert "name each version once" in found(project, RIGHT.replace("3.12", "3.13"))[0]
    assert "name each version once" in found(project, RIGHT.replace(">=3.11", ">=3.10"))[0]
    assert "not absolute" in found(project, RIGHT.replace("https://example.org", "docs"))[0]
    assert "names no README" in found(project, RIGHT.replace('readme = "README.md"', ""))[0]


def test_a_marker_of_types_and_its_classifier_go_together(project: Project) -> None:
    assert "py.typed" in found(project, RIGHT, typed=False)[0]


def test_a_dependency_that_is_imported_nowhere_is_found(project: Project) -> None:
    text = RIGHT.replace("[project.urls]", 'dependencies = ["a-b[c]>=1", "hdrhistogram", "gone<2"]\n[project.urls]')
    files = {"pyproject.toml": text, "README.md": "", "python/x/py.typed": ""}
    files["python/x/one.py"] = "import os\n\ndef f():\n    from a_b.c import d\n    import hdrh\n    return d, hdrh\n"
    assert [item.message for item in metadata.check(project(files))] == [
        "the dependency gone is imported nowhere: remove it"
    ]


def test_a_link_that_is_not_made_absolute_is_found(project: Project) -> None:
    # Of a form that the page's writer does not know: a link over two lines.
    [message] = found(project, RIGHT, "[a\nb](docs/a.md)\n")
    assert "docs/a.md leads nowhere" in message


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
