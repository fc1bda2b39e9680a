"""Every command in the documents: it exists, its flags are right, and what is cheap is run.

A command stands in a block of language ``console`` after ``$``. One that mounts or measures is read by the command line's own parser,
and its volumes by the engine; the others are run on recorded results.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from pgdyno import _engine
from pgdyno.cli import main as cli_main
from tests.analysis.synthetic import make_experiment

ROOT = Path(__file__).resolve().parents[2]
PGDYNO = ".venv/bin/pgdyno"
RUN = {"runs", "query", "report", "completion", "volume list"}
"""Commands that change nothing and are quick. ``doctor`` is run too; its exit code is the machine's."""


@dataclass(frozen=True)
class Example:
    """One command of one document."""

    document: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.document}:{self.line}"


def examples() -> list[Example]:
    """Every line after ``$`` in a console block."""
    found = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("[!r]*/**/*.md"))]:
        inside = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if line.startswith("```"):
                inside = line == "```console"
            elif inside and line.startswith("$ "):
                found.append(Example(path.relative_to(ROOT).as_posix(), number, line.removeprefix("$ ")))
    return found


EXAMPLES = examples()
COMMANDS = [example for example in EXAMPLES if PGDYNO in example.text]
OTHERS = [example for example in EXAMPLES if PGDYNO not in example.text]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment, recorded in a results folder."""
    return make_experiment(tmp_path_factory.mktemp("results"))


def arguments_of(example: Example, recorded: Path) -> list[str]:
    words = shlex.split(example.text)
    assert words[0] in (PGDYNO, "sudo"), f"{example}: begin with {PGDYNO}, or with sudo where root is needed"
    words = words[words.index(PGDYNO) + 1 :]
    return [str(recorded) if re.search(r"\d{8}T\d{6}Z-compare", word) else word for word in words]


def test_there_are_examples() -> None:
    assert len(COMMANDS) > 10, "the documents have lost their examples, or this test does not find them"


@pytest.mark.parametrize("example", COMMANDS, ids=str)
def test_a_command_of_the_documents_is_right(
    example: Example, recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = arguments_of(example, recorded)
    monkeypatch.setenv("PGDYNO_RESULTS", str(recorded.parent))
    name = " ".join(arguments[:2] if arguments[0] == "volume" else arguments[:1])
    if name in RUN or "--help" in arguments:
        assert cli_main.run(arguments) == 0, capsys.readouterr().err
        assert any(capsys.readouterr())
    elif name == "doctor" and "--clean" not in arguments:
        assert cli_main.run(arguments) in (0, 3)
    else:
        parse(cli_main.cli, arguments)


@pytest.mark.parametrize("example", COMMANDS, ids=str)
def test_the_volumes_of_the_documents_can_be_bought(example: Example, recorded: Path, engine: Path) -> None:
    arguments = arguments_of(example, recorded)
    if arguments[0] == "compare" or arguments[:2] == ["volume", "attach"]:
        for word in arguments[1:]:
            if re.match(r"(null|gp3|io2bx)\b", word):
                assert _engine.run_json(["volume", "spec", word])["spec"]


def parse(command: click.Command, arguments: list[str]) -> None:
    """Have click read a command line down to its last command, and run nothing."""
    with command.make_context("pgdyno", arguments.copy()) as context:
        if isinstance(command, click.Group):
            rest = [*context._protected_args, *context.args]
            _, inner, rest = command.resolve_command(context, rest)
            assert inner is not None
            parse(inner, rest)


@pytest.mark.parametrize("example", OTHERS, ids=str)
def test_other_commands_of_the_documents_are_targets_of_make(example: Example) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for part in example.text.split("&&"):
        words = shlex.split(part)
        if words[0] == "make":
            assert set(words[1:]) <= targets
        else:
            assert words[0] in ("git", "cd"), f"{example}: teach this test what `{words[0]}` is"


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
