"""The generated pages of the reference: whole, up to date, and found out when they are not."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from pydantic import BaseModel, Field

from pgdyno.cli.main import cli
from tools import generate
from tools.reference import __main__ as reference
from tools.reference import schema
from tools.reference.cli import contexts, split_help
from tools.reference.markdown import MARK


@pytest.mark.usefixtures("engine")
def test_the_generated_files_are_what_their_sources_make(capfd: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0, capfd.readouterr().err


@pytest.mark.usefixtures("engine")
def test_a_page_that_was_edited_or_removed_or_has_lost_its_writer_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    monkeypatch.setattr(reference, "PAGES", {"a.md": lambda: f"<!-- {MARK} -->\na\n", "b.md": lambda: "b\n"})
    assert reference.main([]) == 0
    assert reference.main(["--check"]) == 0
    (tmp_path / "a.md").write_text("edited\n")
    (tmp_path / "b.md").unlink()
    (tmp_path / "old.md").write_text(f"<!-- {MARK} -->\n")
    (tmp_path / "own.md").write_text("written by hand\n")
    assert reference.main(["--check"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "docs/reference/a.md is not what its source makes: change the source, then `make generate`",
        "docs/reference/b.md is missing: write it with `make generate`",
        "docs/reference/old.md has no writer any more: remove it, or add its writer to tools/reference/__main__.py",
    ]


def test_every_command_and_option_is_in_the_reference() -> None:
    text = reference.PAGES["cli.md"]()
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
    for line in (Path(reference.FOLDER) / "cli.md").read_text().splitlines():
        if line.startswith("| `-"):
            option, default, meaning = (cell.strip() for cell in line.split(" | ", 2))
            rows[option] = default
            assert not any(sign in default for sign in ("x<", "x>", "<=", ">=", "None")), line
            assert "RANGE" not in option, line
            assert meaning.removesuffix(" |").endswith((".", ")", "?", "below")), line
    assert rows["| `--dilation TIMES`"] == "1"
    assert rows["| `--server-cpus TEXT`"] == "all"
