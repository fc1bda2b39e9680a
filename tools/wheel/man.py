"""Manual pages, one for each command, from the same texts as ``--help`` (man(7) has the format)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator

import click

from pgdyno import __version__
from pgdyno.base.errors import EXIT_CODES
from pgdyno.cli.main import COMMANDS, cli

_EXAMPLE = "Example:"


def pages() -> dict[str, str]:
    """File name -> text of each page: ``pgdyno.1``, ``pgdyno-compare.1`` …; a command of a group is in the group's."""
    root = click.Context(cli, info_name="pgdyno")
    made = {"pgdyno.1": _page(root, "Measure what a cloud volume does to PostgreSQL", _commands())}
    for name, summary in COMMANDS.items():
        command = cli.get_command(root, name)
        assert command is not None, name
        context = click.Context(command, info_name=name, parent=root)
        made[f"pgdyno-{name}.1"] = _page(context, summary.removesuffix("."), _inner(context))
    return made


def _page(context: click.Context, summary: str, more: Iterable[str]) -> str:
    name = context.command_path.replace(" ", "-")
    lines = [
        f'.TH {name.upper()} 1 "" "pgdyno {__version__}" "pgdyno"',
        ".SH NAME",
        f"{_plain(name)} \\- {_plain(summary)}",
        ".SH SYNOPSIS",
        *_usage(context),
        ".SH DESCRIPTION",
        *_text(context.command.help or ""),
        *_options(context, ".SH OPTIONS"),
        *more,
        *_example(context.command.help or "", ".SH EXAMPLES"),
        ".SH EXIT STATUS",
        *(line for code, meaning in EXIT_CODES.items() for line in (".TP", f"\\fB{code}\\fR", _plain(meaning))),
        ".SH SEE ALSO",
        ", ".join(f"\\fB{_plain(text)}\\fR(1)" for text in _others(name)),
    ]
    return "\n".join(lines) + "\n"


def _others(name: str) -> list[str]:
    return [f"pgdyno-{item}" for item in COMMANDS] if name == "pgdyno" else ["pgdyno"]


def _commands() -> Iterator[str]:
    yield ".SH COMMANDS"
    for name, summary in COMMANDS.items():
        yield from (".TP", f"\\fB{_plain(name)}\\fR", _plain(summary))


def _inner(context: click.Context) -> Iterator[str]:
    """The commands of a group."""
    if not isinstance(context.command, click.Group):
        return
    yield ".SH COMMANDS"
    for name in context.command.list_commands(context):
        command = context.command.get_command(context, name)
        assert command is not None, name
        inner = click.Context(command, info_name=name, parent=context)
        yield f".SS {_plain(inner.command_path)}"
        yield from (*_usage(inner), ".PP", *_text(command.help or ""), *_options(inner, ".PP"))
        yield from _example(command.help or "", ".PP")


def _usage(context: click.Context) -> list[str]:
    return [f"\\fB{_plain(context.command_path)}\\fR {_plain(' '.join(context.command.collect_usage_pieces(context)))}"]


def _paragraphs(text: str) -> list[list[str]]:
    return [part.splitlines() for part in inspect.cleandoc(text).split("\n\n")]


def _is_example(lines: list[str]) -> bool:
    return [line.strip() for line in lines if line.strip() not in ("", "\b")][:1] == [_EXAMPLE]


def _text(text: str) -> Iterator[str]:
    for number, lines in enumerate(paragraph for paragraph in _paragraphs(text) if not _is_example(paragraph)):
        if number:
            yield ".PP"
        if lines[0].strip() == "\b":
            yield from (".nf", *map(_plain, lines[1:]), ".fi")
        else:
            yield from (_plain(line.strip()) for line in lines)


def _example(text: str, heading: str) -> Iterator[str]:
    for lines in _paragraphs(text):
        if _is_example(lines):
            commands = [line for line in lines if line.strip() not in ("\b", _EXAMPLE)]
            yield from (heading, ".nf", *(_plain(line.strip()) for line in commands), ".fi")


def _options(context: click.Context, heading: str) -> Iterator[str]:
    records = [
        record
        for parameter in context.command.get_params(context)
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context)) is not None
    ]
    if records:
        yield heading
    for names, meaning in records:
        yield from (".TP", f"\\fB{_plain(names)}\\fR", _plain(meaning))


def _plain(text: str) -> str:
    """Text that roff takes as it is: backslashes, dashes that can be copied, and no line that begins as a request does."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    escaped = "".join(sign if sign.isascii() else f"\\[u{ord(sign):04X}]" for sign in escaped)
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
