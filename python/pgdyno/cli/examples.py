"""``pgdyno examples``: the experiment files that came with pgdyno, listed, printed and copied."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

_FOLDER, _ENDING = "experiments", ".toml"


def _names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..base import installation

    names = sorted(path.stem for path in installation.data_folder(_FOLDER).glob(f"*{_ENDING}"))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@click.command(short_help="List, print or copy the experiment files that came with pgdyno.")
@click.argument("name", required=False, shell_complete=_names)
@click.option(
    "--copy",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Copy the file and its scripts into a directory; without NAME all of them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
def command(name: str | None, folder: Path | None, as_json: bool) -> None:
    """List the experiment files that came with pgdyno, print one, or copy it to change it.

    A file that exists is not overwritten.

    \b
    Example:
      pgdyno examples
      pgdyno examples wal-volume
      pgdyno examples own-scripts --copy my-experiments
    """
    from pgdyno.cli import came_with
    from pgdyno.cli.output import print_json, print_rows

    if name is not None and as_json:
        raise click.UsageError("--json is for the list, without NAME")
    if folder is not None:
        chosen = came_with.files(_FOLDER, _ENDING) if name is None else {name: came_with.named(_FOLDER, _ENDING, name)}
        for copy in _copy_all(list(chosen.values()), folder):
            click.echo(copy)
    elif name is not None:
        click.echo(came_with.named(_FOLDER, _ENDING, name).read_text(encoding="utf-8"), nl=False)
    else:
        documents = {item: (_document(path), path) for item, path in came_with.files(_FOLDER, _ENDING).items()}
        if as_json:
            listed = [{"name": text, "title": of["title"], "path": str(path)} for text, (of, path) in documents.items()]
            print_json({"examples": listed})
        else:
            print_rows(("name", "what it measures"), [(text, str(of["title"])) for text, (of, _) in documents.items()])


def _document(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


def _scripts(path: Path) -> list[Path]:
    """The files that an experiment names, relative to it."""
    workload = _document(path).get("workload", {})
    named = [*workload.get("files", ()), *_of_database(workload.get("database", {}))]
    return [Path(str(text["path"] if isinstance(text, dict) else text).partition("@")[0]) for text in named]


def _of_database(table: dict[str, Any]) -> list[str]:
    """The files of a database that is restored."""
    return [table[key] for key in ("from", "globals") if key in table]


def _copy_all(chosen: list[Path], folder: Path) -> list[Path]:
    """Copy the files with their scripts, all or none; returns the copies. :class:`InputError` for one that exists."""
    from ..base import owner
    from ..base.errors import InputError, OutputError

    wanted = {folder / path.name: path for path in chosen}
    wanted |= {folder / script: path.parent / script for path in chosen for script in _scripts(path)}
    for copy, path in wanted.items():
        if copy.exists() and copy.read_bytes() != path.read_bytes():
            raise InputError(f"{copy} already exists, and is another file", remedy="name another directory with --copy")
    try:
        for copy, path in wanted.items():
            owner.make_directories(copy.parent)
            copy.write_bytes(path.read_bytes())
            owner.give(copy)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written: {error.strerror}", remedy="name a directory that you may write to with --copy"
        ) from error
    return list(wanted)
