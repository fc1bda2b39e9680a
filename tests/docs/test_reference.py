"""The pages of the reference that are made from the sources: whole, with links that lead somewhere and commands that exist."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

import click
import pytest
from pydantic import BaseModel, Field

from pgdyno.cli.main import cli
from tests.docs import documents
from tests.docs.documents import ROOT
from tests.docs.test_commands import exists
from tools import generate, reference
from tools.lint.links import headings, links
from tools.published.items import FOLDER, LETTERS, read_items
from tools.reference import schema
from tools.reference.cli import contexts, split_help

Texts = dict[str, str]


@pytest.fixture(scope="module")
def pages(engine: Path) -> Texts:
    """Path and text of every page that ``make site`` makes."""
    assert engine.exists()
    return {f"{reference.FOLDER}/{name}": reference.written(name) for name in reference.PAGES}


def dead(texts: Texts, of: Texts) -> list[str]:
    """Links of ``of`` to something that is neither a file nor one of ``texts``, or to a heading that such a text lacks."""
    found = []
    for source, text in of.items():
        for _, target in links(text):
            file_name, _, heading = target.partition("#")
            goal = posixpath.normpath(posixpath.join(posixpath.dirname(source), file_name)) if file_name else source
            if re.match(r"[a-z]+:", target):
                continue
            if goal not in texts:
                found += [] if (ROOT / goal).exists() else [f"{source}: {target}"]
            elif heading and heading not in headings(texts[goal]):
                found.append(f"{source}: {target}")
    return found


def test_the_schemas_are_what_their_models_make(capfd: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capfd.readouterr().err


def test_links_from_and_to_the_pages_lead_somewhere(pages: Texts) -> None:
    assert dead(pages, pages | dict(map(documents.read, documents.documents()))) == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    texts = {
        "docs/reference/a.md": "# A\n[b](b.md) [gone](gone.md) [a](#a) [no](#no) [x](https://example.org)\n",
        "docs/reference/b.md": "",
    }
    assert dead(texts, texts) == ["docs/reference/a.md: gone.md", "docs/reference/a.md: #no"]


def test_the_commands_in_the_pages_exist(pages: Texts) -> None:
    spans = [span for page in pages.items() if page[0] != documents.COMMANDS[0] for span in documents.spans(*page)]
    assert spans
    for span in spans:
        exists(span)


def test_every_thing_that_the_published_documents_do_has_its_number() -> None:
    for name, letter in LETTERS.items():
        items = read_items(ROOT / FOLDER / f"{name}.toml")
        assert items.document == name
        assert [item.id for item in items.item] == [f"{letter}{number}" for number in range(1, len(items.item) + 1)]


OF_TESTS = {"PGDYNO_COMPLETE", "PGDYNO_BUILD_HASH", "PGDYNO_FUZZ_S"}
"""Between the shell and click, between cargo and the engine that it builds, and of tests in Rust: for how many seconds they fuzz."""


def test_the_page_of_the_environment_names_the_variables_of_the_sources() -> None:
    files = [*(ROOT / "python").rglob("*.py"), *(ROOT / "crates").glob("*/src/**/*.rs")]
    used = {name for path in files for name in re.findall(r"\bPGDYNO_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    text = (ROOT / reference.FOLDER / "environment.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(PGDYNO_\w+)`", text, re.MULTILINE)) == used - OF_TESTS


def test_every_command_and_option_is_in_the_reference() -> None:
    text = documents.COMMANDS[1]
    results = list(contexts(click.Context(cli, info_name="pgdyno")))
    assert len(results) > 8
    for context in results:
        section = text.split(f"## {context.command_path}\n")[1].split("\n## ")[0]
        options = (
            parameter
            for parameter in context.command.params
            if isinstance(parameter, click.Option) and not parameter.hidden
        )
        for name in (name for option in options for name in option.opts):
            assert name in section, f"{context.command_path} {name}"
        assert "```console\n$ " in section


def test_the_example_of_a_help_is_taken_out_of_its_text() -> None:
    text, example = split_help("Do it.\n\nMore.\n\n\b\nExample:\n  pgdyno do\n  pgdyno do --twice\n")
    assert text == "Do it.\n\nMore."
    assert example == ["pgdyno do", "pgdyno do --twice"]


class Part(BaseModel):
    """One part."""

    share: float = Field(ge=0, le=1)


class Whole(BaseModel):
    """All of it."""

    parts: list[Part]
    name: str | None = None
    kinds: dict[str, int] = Field(default_factory=dict)


def test_a_model_becomes_tables() -> None:
    whole, part = schema.sections(Whole, "The whole")
    assert whole.splitlines() == [
        "## The whole",
        "",
        "All of it.",
        "",
        "| key | type | default | meaning |",
        "|---|---|---|---|",
        "| `parts` | list of [Part](#part) |  |  |",
        "| `name` | string or null | none |  |",
        "| `kinds` | table of integer | empty |  |",
    ]
    assert "| `share` | number ≥ 0 ≤ 1 |" in part


def test_a_part_may_have_the_name_that_readers_know() -> None:
    whole, part = schema.sections(Whole, "The whole", {"Part": "[part]"})
    assert "| `parts` | list of [[part]](#part) |" in whole
    assert part.startswith("## [part]\n")


def test_a_default_is_a_default_and_a_range_is_told_in_words() -> None:
    rows = {}
    for line in documents.COMMANDS[1].splitlines():
        if line.startswith("| `-"):
            option, default, meaning = (cell.strip() for cell in line.split(" | ", 2))
            rows[option] = default
            assert not any(sign in default for sign in ("x<", "x>", "<=", ">=", "None")), line
            assert "RANGE" not in option, line
            assert meaning.removesuffix(" |").endswith((".", ")", "?", "below")), line
    assert rows["| `--dilation TIMES`"] == "1"
    assert rows["| `--server-cpus TEXT`"] == "all"
