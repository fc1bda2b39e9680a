"""Every command in the documents exists, and so do its flags, its volumes and its files; on any machine.

:mod:`tests.docs.test_execution` runs them where volumes can be attached.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pgdyno.base import engine as _engine
from pgdyno.cli import main as cli_main
from tests.docs import documents
from tests.docs.documents import EXAMPLES, ROOT, Example
from tests.docs.small import SMALLER, smaller

PGDYNO = ("pgdyno", ".venv/bin/pgdyno")
OTHERS = {"aws", "make", "git", "cd", "jq", "fio", "psql", "sudo", "cat", "less", "export", "printf", "podman", "ssh"}
"""What else a document may use; targets of make are looked up."""


def commands(example: Example) -> Iterator[list[str]]:
    """The words of each program of a line: ``a | b && c`` are three."""
    lexer = shlex.shlex(example.text, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "&&"]:
        if word in ("|", "&&", ";", "||"):
            yield words
            words = []
        else:
            words.append(word)


def of_pgdyno(example: Example) -> Iterator[list[str]]:
    """Arguments of each call of pgdyno in a line, without redirections."""
    for words in commands(example):
        while words and (words[0] == "sudo" or re.fullmatch(r"[A-Z_]+=.*", words[0])):
            words = words[1:]
        if words and words[0] in PGDYNO:
            end = next((at for at, word in enumerate(words) if word in ("<", ">", ">>")), len(words))
            yield words[1:end]


def test_there_are_examples() -> None:
    assert len([item for item in EXAMPLES if list(of_pgdyno(item))]) > 20, "the documents have lost their examples"


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_command_of_the_documents_is_right(example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in re.findall(r"results/[\w-]+", example.text):  # what a document has made before it is there
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    monkeypatch.chdir(tmp_path)
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for words in commands(example):
        program = next(word for word in words if word != "sudo" and not re.fullmatch(r"[A-Z_]+=.*", word))
        if program == "make":
            assert {word for word in words[1:] if "=" not in word} <= targets
        else:
            assert program in (*PGDYNO, *OTHERS), f"{example}: teach this test what `{program}` is"
    for arguments in of_pgdyno(example):
        parse(cli_main.cli, arguments)
        parse(cli_main.cli, smaller(arguments))


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_the_volumes_and_files_of_the_documents_exist(example: Example, engine: Path) -> None:
    for arguments in of_pgdyno(example):
        for word in arguments:
            if re.match(r"(null|gp3|io2bx)(:|$)", word):
                assert _engine.run_json(["volume", "spec", word])["spec"]
            if word.startswith("experiments/"):
                assert (ROOT / word.partition("@")[0]).is_file(), f"{example}: {word} does not exist"


def parse(command: click.Command, arguments: list[str]) -> None:
    """Have click read a command line down to its last command, and run nothing."""
    if {"--help", "-h"} & set(arguments):
        arguments = [word for word in arguments if word not in ("--help", "-h")]
    with command.make_context("pgdyno", arguments.copy(), resilient_parsing=not arguments) as context:
        if isinstance(command, click.Group) and arguments:
            rest = [*context._protected_args, *context.args]
            _, inner, rest = command.resolve_command(context, rest)
            assert inner is not None
            if rest or isinstance(inner, click.Group):
                parse(inner, rest)


SPANS = [span for document in documents.DOCUMENTS for span in documents.spans(*document)]


@pytest.mark.parametrize("span", SPANS, ids=str)
def test_a_command_in_the_text_and_its_flags_exist(span: Example) -> None:
    exists(span)


def exists(span: Example) -> None:
    """Look up each command and flag of a command in a text."""
    command: click.Command = cli_main.cli
    context = click.Context(command)
    own = re.split(r"\s(?:&&|\|\|?|;)\s", re.sub(r"\$\([^)]*\)", "", span.text))[0]  # without a shell's other commands
    for word in shlex.split(own)[1:]:
        if isinstance(command, click.Group) and re.fullmatch(r"[a-z][a-z-]*", word):
            inner = command.get_command(context, word)
            assert inner is not None, f"{span}: there is no `{word}` in `{span.text}`"
            command = inner
        elif word.startswith("-") and word not in ("--help", "-h"):
            flags = {flag for parameter in command.params for flag in parameter.opts + parameter.secondary_opts}
            assert word.split("=")[0] in flags, f"{span}: there is no `{word}` in `{span.text}`"


def test_commands_are_found_with_their_marks(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(
        "<!-- not run: make x: it takes an hour -->\n\n```console\n$ make x y\n$ a \\\n  b\noutput\n```\n"
        "Text `sudo .venv/bin/pgdyno runs` and `ls`.\n```text\n$ no\n```\n```console\n$ make x\n```\n"
    )
    document = documents.read(page, tmp_path)
    examples = documents.examples(*document)
    assert [(example.line, example.text, example.why_not) for example in examples] == [
        (4, "make x y", "it takes an hour"),
        (5, "a   b", ""),
        (14, "make x", ""),
    ]
    assert [span.text for span in documents.spans(*document)] == ["pgdyno runs"]


def test_a_mark_without_its_command_is_an_error(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("<!-- not run: make y: it takes an hour -->\n```console\n$ make x\n```\n")
    with pytest.raises(AssertionError, match="no command of this block begins with make y"):
        documents.examples(*documents.read(page, tmp_path))


def test_commands_hide_in_no_other_kind_of_block() -> None:
    hidden = []
    for path in documents.documents():
        language = None
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("```"):
                language = line.removeprefix("```") if language is None else None
                if language in ("sh", "bash", "shell"):
                    hidden.append(f"{path.name}:{number}: use a block of language console, with `$ `")
            elif language != "console" and re.match(r"(?:    )?\$ ", line):
                hidden.append(f"{path.name}:{number}: {line}")
    assert hidden == []


def toml_blocks() -> Iterator[tuple[str, str]]:
    """Place and text of every experiment file that stands in a document."""
    for path in documents.documents():
        for match in re.finditer(r"^```toml\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL):
            # A policy of snapshots is read by tests/retention, a hosts file by tests/hosts.
            others = "[[schedule]]" in match.group(1) or "scheduler =" in match.group(1)
            if "schema_version" in match.group(1) and not others:
                yield path.relative_to(ROOT).as_posix(), match.group(1)


@pytest.mark.parametrize(("place", "text"), list(toml_blocks()), ids=lambda value: value if "\n" not in value else "")
def test_an_experiment_file_in_the_documents_is_right(place: str, text: str, tmp_path: Path) -> None:
    from pgdyno.experiment import read_experiment

    file = tmp_path / "experiment.toml"
    file.write_text(text)
    assert read_experiment(file).arms


def test_what_is_made_smaller_are_commands() -> None:
    assert set(SMALLER) <= set(cli_main.COMMANDS)
    assert smaller(["compare", "gp3", "--help"]) == ["compare", "gp3", "--help"]


def test_every_document_can_be_found_from_the_first_one() -> None:
    from tools.lint.links import links

    start = ROOT / "README.md"
    seen, to_read = {start}, [start]
    while to_read:
        path = to_read.pop()
        for _, target in links(path.read_text(encoding="utf-8")):
            goal = (path.parent / target.split("#")[0]).resolve()
            if goal.suffix == ".md" and goal.is_file() and goal not in seen:
                seen.add(goal)
                to_read.append(goal)
    assert set((ROOT / "docs").rglob("*.md")) <= seen
