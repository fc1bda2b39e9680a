"""Every thing that a published document does or says has an answer, and each command and page that the answer names is there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from pgdyno.base.errors import InputError
from pgdyno.cli.main import cli
from tools.lint import Finding
from tools.published.items import FOLDER, LETTERS, Items, read_items
from tools.reference.cli import contexts


def check(root: Path) -> list[Finding]:
    """Items that are missing, and answers that lead nowhere."""
    known = {
        context.command_path.removeprefix("pgdyno ") for context in contexts(click.Context(cli, info_name="pgdyno"))
    }
    findings = []
    for name in LETTERS:
        path = root / FOLDER / f"{name}.toml"
        try:
            items = read_items(path)
        except (InputError, OSError) as error:
            findings.append(Finding(f"{FOLDER}/{name}.toml", 0, str(error)))
            continue
        findings += [Finding(f"{FOLDER}/{name}.toml", 0, message) for message in problems(items, name, known, root)]
    return findings


def problems(items: Items, name: str, commands: set[str], root: Path) -> Iterator[str]:
    """What breaks a rule, as sentences."""
    wanted = [f"{LETTERS[name]}{number}" for number in range(1, len(items.item) + 1)]
    there = [item.id for item in items.item]
    if items.document != name:
        yield f"its document is `{items.document}`: write `{name}`"
    if there != wanted:
        odd = sorted({*wanted} ^ {*there}) or ["their order"]
        yield f"the items must be {wanted[0]} to {wanted[-1]}, each once: look at {', '.join(odd)}"
    for item in items.item:
        for command in item.commands:
            if command not in commands:
                yield f"{item.id}: there is no command `pgdyno {command}`"
        for page in item.pages:
            if not (root / page).is_file():
                yield f"{item.id}: there is no file {page}"
