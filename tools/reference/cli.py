"""``cli.md``: every command with its options, from click."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator

import click

from pgdyno.cli.main import COMMANDS, cli
from tools.reference import markdown as md

INTRODUCTION = """
`--help` (`-h`) of each command prints the same text, with an example at its end. Results go to standard output, progress and errors to
standard error. The exit codes are in [errors](errors.md), environment variables in
[environment](environment.md).
"""
EXAMPLE = "Example:"


def page() -> str:
    """The text of the page."""
    root = click.Context(cli, info_name="pgdyno")
    described = [_section(context) for context in contexts(root)]
    return md.page("Commands", "`python/pgdyno/cli`", INTRODUCTION, _overview(), *described)


def contexts(parent: click.Context) -> Iterator[click.Context]:
    """Every command below one, in the order of its help."""
    group = parent.command
    assert isinstance(group, click.Group)
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        assert command is not None, name
        context = click.Context(command, info_name=name, parent=parent)
        yield context
        if isinstance(command, click.Group):
            yield from contexts(context)


def _overview() -> str:
    rows = [[f"[{name}]({md.anchor('pgdyno ' + name)})", text] for name, text in COMMANDS.items()]
    return md.table(["command", "what it does"], rows)


def _section(context: click.Context) -> str:
    command, path = context.command, context.command_path
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    text, example = split_help(command.help or "")
    parts = [f"## {path}", f"```text\n{usage}\n```", text, _options(context)]
    if example:
        parts.append("```console\n" + "\n".join(f"$ {line}" for line in example) + "\n```")
    return "\n\n".join(part for part in parts if part)


def split_help(text: str) -> tuple[str, list[str]]:
    """The text of a help without click's marks, and the lines of its example."""
    paragraphs = inspect.cleandoc(text).split("\n\n")
    example: list[str] = []
    kept = []
    for paragraph in paragraphs:
        lines = paragraph.replace("\b\n", "").splitlines()
        if lines and lines[0].strip() == EXAMPLE:
            example += [line.strip() for line in lines[1:] if line.strip()]
        elif "\b" in paragraph:
            kept.append("```text\n" + "\n".join(lines) + "\n```")
        else:
            kept.append(paragraph)
    return "\n\n".join(kept), example


def _default(help_text: str, bounds: str) -> tuple[str, str]:
    """The meaning of an option with the range that it takes, which click writes beside the default, and that default."""
    text, default, taken = help_text, "", ""
    if match := re.search(r"\s*\[([^\]]*)\]$", text):
        text = text[: match.start()]
        for part in (part.strip() for part in match.group(1).split(";")):
            if part == bounds:
                taken = part
            else:
                default = part.removeprefix("default: ")
    if not default and (match := re.search(r"\s*\[([^\]]*)\]\.?$", text)):
        text, default = f"{text[: match.start()]}.", match.group(1)
    return (f"{text.removesuffix('.')} ({taken})." if taken else text), default


def _options(context: click.Context) -> str:
    rows = []
    for parameter in context.command.get_params(context):
        record = parameter.get_help_record(context) if isinstance(parameter, click.Option) else None
        if record is None or "--help" in parameter.opts:
            continue
        text, default = _default(record[1], getattr(parameter.type, "_describe_range", str)())
        rows.append([md.code(record[0]), default, text])
    return md.table(["option", "default", "meaning"], rows)
