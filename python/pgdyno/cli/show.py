"""``pgdyno show``: the files that come with pgdyno (experiments, schemas, dashboards), and shell completion."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem, get_completion_class

VARIABLE = "_PGDYNO_COMPLETE"
"""The environment variable by which a shell asks for completions."""
_EXAMPLES, _TOML = "experiments", ".toml"
_DASHBOARDS = (".json", ".yml")
"""Endings of dashboards, and of alerts."""


@click.group()
def command() -> None:
    """Print examples, schemas, dashboards and shell completion.

    \b
    Example:
      pgdyno show examples
      pgdyno show examples wal-volume > mine.toml
      pgdyno show completion bash > ~/.local/share/bash-completion/completions/pgdyno
    """


def _names(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from ..base import installation

    names = sorted(path.stem for path in installation.data_folder(_EXAMPLES).glob(f"*{_TOML}"))
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]


@command.command()
@click.argument("name", required=False, shell_complete=_names)
@click.option(
    "--copy",
    "folder",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Copy the file and its scripts into this directory; without NAME, all files.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the list as one JSON document.")
def examples(name: str | None, folder: Path | None, as_json: bool) -> None:
    """List, print or copy example experiments.

    Existing files are not overwritten.

    \b
    Example:
      pgdyno show examples
      pgdyno show examples wal-volume
      pgdyno show examples own-scripts --copy my-experiments
    """
    from .terminal import print_json, print_rows

    if name is not None and as_json:
        raise click.UsageError("--json is for the list, without NAME")
    if folder is not None:
        chosen = _files(_EXAMPLES, _TOML) if name is None else {name: _file(_EXAMPLES, _TOML, name)}
        for copy in _copy_all(list(chosen.values()), folder):
            click.echo(copy)
    elif name is not None:
        _print(_file(_EXAMPLES, _TOML, name))
    else:
        titles = [(item, str(_document(path)["title"]), path) for item, path in _files(_EXAMPLES, _TOML).items()]
        if as_json:
            print_json(
                {"examples": [{"name": item, "title": title, "path": str(path)} for item, title, path in titles]}
            )
        else:
            print_rows(("name", "what it measures"), [(item, title) for item, title, _ in titles])


@command.command()
@click.argument("name", type=click.Choice(["experiment", "compare", "diagnose", "diagnose-calendar", "reproduce"]))
def schema(name: str) -> None:
    """Print a JSON Schema.

    `experiment` describes experiment files; the others describe what a command prints with --json. `compare` is for `compare` and `run`, and `diagnose-calendar` for `diagnose DIR`.

    \b
    Example:
      pgdyno show schema experiment > experiment.schema.json
      pgdyno show schema compare > compare.schema.json
    """
    _print(_file("schema", ".schema.json", name))


@command.command()
@click.argument("name", required=False)
def dashboards(name: str | None) -> None:
    """List or print dashboards and alerts.

    They are for Grafana and Prometheus, with the metrics that `pgdyno metrics serve` offers.

    \b
    Example:
      pgdyno show dashboards
      pgdyno show dashboards grafana-volumes > grafana-volumes.json
      pgdyno show dashboards prometheus-diagnose > pgdyno.rules.yml
    """
    from ..base.errors import InputError

    known = {item: path for ending in _DASHBOARDS for item, path in _files("dashboards", ending).items()}
    if name is None:
        for item in known:
            click.echo(item)
        return
    path = next((path for item, path in known.items() if name in (item, path.name)), None)
    if path is None:
        raise InputError(f"there is no `{name}`", remedy=f"name one of {', '.join(known)}")
    _print(path)


@command.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell.

    With the files of the example, every new shell reads it. bash also needs the package bash-completion, and zsh needs a line
    in ~/.zshrc before `compinit`: `fpath+=~/.zfunc`.

    \b
    Example:
      pgdyno show completion bash > ~/.local/share/bash-completion/completions/pgdyno
      pgdyno show completion zsh > ~/.zfunc/_pgdyno
      pgdyno show completion fish > ~/.config/fish/completions/pgdyno.fish
    """
    from pgdyno.cli.main import cli

    script = get_completion_class(shell)
    assert script is not None, f"click knows no completion for {shell}"
    click.echo(script(cli, {}, "pgdyno", VARIABLE).source())


def _print(path: Path) -> None:
    click.echo(path.read_text(encoding="utf-8"), nl=False)


def _files(folder: str, ending: str) -> dict[str, Path]:
    """Name -> file of a folder, sorted by name. :class:`HostError` when the installation lacks them."""
    from ..base import installation
    from ..base.errors import HostError

    place = installation.data_folder(folder)
    files = {path.name.removesuffix(ending): path for path in sorted(place.glob(f"*{ending}"))}
    if not files:
        raise HostError(f"{place} lacks its files, which come with pgdyno", remedy=installation.how_to_install_again())
    return files


def _file(folder: str, ending: str, name: str) -> Path:
    """The file of a name, with or without its ending. :class:`InputError` when there is none."""
    from ..base.errors import InputError

    files = _files(folder, ending)
    path = files.get(name.removesuffix(ending))
    if path is None:
        raise InputError(f"there is no `{name}`", remedy=f"name one of {', '.join(files)}")
    return path


def _document(path: Path) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(path.read_text(encoding="utf-8"))


def _scripts(path: Path) -> list[Path]:
    """The scripts and dumps that an experiment names, relative to it."""
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
