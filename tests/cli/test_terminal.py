"""Help and messages on terminals of every kind: narrow, wide, without colour, dumb, and pipes."""

from __future__ import annotations

import io
import re

import click
import pytest

from pgdyno.cli import main as cli_main
from pgdyno.cli import terminal
from tests.cli.terminal import on_terminal
from tools.reference.cli import contexts

ESCAPE = "\033["
WIDTHS = (40, 60, 80, 120, 200)


def helps(width: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The help of every command as a terminal of that width shows it."""
    monkeypatch.setenv("COLUMNS", str(width))
    root = cli_main.cli.make_context("pgdyno", [], resilient_parsing=True)
    helps = {"pgdyno": cli_main.cli.get_help(root)}
    for context in contexts(root):
        fitted = context.command.make_context(context.info_name, [], parent=context.parent, resilient_parsing=True)
        helps[context.command_path] = context.command.get_help(fitted)
    return helps


def without_what_cannot_be_wrapped(text: str) -> list[str]:
    """Lines of a help except commands of its example, and names of options that are alone on their line."""
    kept, inside = [], False
    for line in text.splitlines():
        inside = line.strip() == "Example:" or (inside and line.startswith("    "))
        option = re.match(r"\s+-{1,2}\w", line) and not re.search(r"\S {2,}\S", line)
        if not inside and not option:
            kept.append(line)
    return kept


@pytest.mark.parametrize("width", WIDTHS)
def test_help_keeps_inside_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    document = helps(width, monkeypatch)
    assert len(document) > 8
    most = min(width, terminal.WIDEST)
    wide = {
        name: line
        for name, text in document.items()
        for line in without_what_cannot_be_wrapped(text)
        if len(line) > most
    }
    assert wide == {}


def test_a_wide_terminal_is_used_up_to_what_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = {width: max(map(len, helps(width, monkeypatch)["pgdyno compare"].splitlines()[:12])) for width in WIDTHS}
    assert longest[40] <= 40 < longest[80] <= 80 < longest[120] == longest[200] <= terminal.WIDEST


def test_help_on_a_terminal_is_as_wide_as_that() -> None:
    shown = on_terminal("-m", "pgdyno", "volume", "attach", "--help", columns=40)
    assert "Attach the emulated volume SPEC" in shown
    assert all(len(line) <= 40 for line in without_what_cannot_be_wrapped(shown))


REFUSED = ("-m", "pgdyno", "volume", "attach", "gp3")


def test_an_error_is_coloured_on_a_terminal_alone() -> None:
    assert on_terminal(*REFUSED).startswith(f"{ESCAPE}31m{ESCAPE}1merror:{ESCAPE}0m the mount point is missing")


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(environment: dict[str, str]) -> None:
    assert ESCAPE not in on_terminal(*REFUSED, **environment)
    coloured = (
        "import click\nfrom pgdyno.cli import main\n"
        "command = click.Command('x', callback=lambda: click.echo(click.style('x', fg='red')))\n"
        "main.LazyGroup.get_command = lambda self, ctx, name: command\nmain.run(['doctor'])"
    )
    assert ESCAPE in on_terminal("-c", coloured)
    assert ESCAPE not in on_terminal("-c", coloured, **environment)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_is_neither_live_nor_coloured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert terminal.is_live(Terminal()) and terminal.wants_colour(Terminal())
    assert not terminal.is_live(io.StringIO()) and not terminal.wants_colour(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "")  # the convention: an empty one does not count
    assert terminal.wants_colour(Terminal())


def test_results_go_to_standard_output_and_words_to_standard_error(
    results_dir: object, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_main.run(["runs", "--json"]) == 0
    readouterr = capsys.readouterr()
    assert readouterr.err == "" and readouterr.out.startswith("{")
    assert cli_main.run(["runs"]) == 0
    result = capsys.readouterr()
    assert result.out == "" and "no experiments in" in result.err


def test_every_command_with_results_has_json() -> None:
    """Those that print what was asked for; the others act, or their output has a form of its own already.

    `demo` hands its options to `compare`, which has it.
    """
    without = {
        "capture stats",
        "show completion",
        "show dashboards",
        "demo",
        "show schema",
        "volume detach",
        "volume mark",
        "metrics serve",
        "data remove",
        "hosts scheduler",
        "hosts worker",
    }
    missing = []
    for context in contexts(click.Context(cli_main.cli, info_name="pgdyno")):
        name = context.command_path.removeprefix("pgdyno ")
        options = {opt for param in context.command.params for opt in param.opts}
        if not isinstance(context.command, click.Group) and "--json" not in options and name not in without:
            missing.append(name)
    assert missing == []


def test_what_stands_in_brackets_is_shown_on_a_bar() -> None:
    """Names of files, arms and folders are the user's: none of them is a style, or the end of one."""
    shown = on_terminal(
        "-c",
        "from pgdyno.cli.terminal import Bar\nwith Bar() as bar:\n    bar.show(0.5, 'load: [bold] of [/tmp]')\n",
        columns=120,
    )
    assert "load: [bold] of [/tmp]" in shown
    assert "Error" not in shown
