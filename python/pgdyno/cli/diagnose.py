"""``pgdyno diagnose``: which limit binds on a server in use, whose requests fill it, and what to do."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.cli import shared

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pgdyno.diagnose.bought import Purchase
    from pgdyno.diagnose.diagnosis import Diagnosis
    from pgdyno.diagnose.provider import Provider

WATCH = "60s"
"""How long a server is watched by default."""


@click.command(short_help="Say which limit binds on a running server, and what to do.")
@click.argument("target", metavar="DSN|RUN")
@click.option("--for", "watch_for", metavar="TIME", help=f"How long to watch. [{WATCH}]")
@click.option(
    "--bought", multiple=True, metavar="[ROLE=]VOLUME",
    help="What was bought, by role: `data=gp3:iops=6000`, `wal=io2bx`; repeatable.",
)  # fmt: skip
@click.option("--instance", metavar="TYPE", help="Instance type of the server, for example r6g.2xlarge.")
@click.option("--keep", type=shared.PathParameter(), metavar="DIR", help="Keep what was seen, as a results folder.")
@click.option(
    "--cloudwatch", multiple=True, metavar="[ROLE=]FILE",
    help="With RUN: the volume's metrics, from `aws cloudwatch get-metric-data`; repeatable.",
)  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    target: str,
    watch_for: str | None,
    bought: tuple[str, ...],
    instance: str | None,
    keep: Path | None,
    cloudwatch: tuple[str, ...],
    as_json: bool,
) -> None:
    """Watch a server and say which limit binds, whose requests fill it, and what to do; or that nothing binds.

    DSN is a connection string, without a password; a role with pg_monitor sees all, and root is not needed. Nothing on the
    server is changed. RUN is the directory of a recorded run or of a watch that was kept, which is judged in the same way.

    \b
    Example:
      pgdyno diagnose service=app --bought data=gp3:iops=6000
      pgdyno diagnose "host=db.example dbname=app user=monitor" --for 5min --json
    """
    from pgdyno.diagnose.diagnosis import diagnose

    if _is_directory(target):
        _refuse_options_of_a_watch(watch_for, keep)
        _show(diagnose(Path(target), _purchase(bought, instance), _providers(cloudwatch)), target, as_json)
        return
    _refuse_metrics(cloudwatch)
    with _folder(keep) as root:
        path = _watched(target, watch_for or WATCH, bought, instance, root)
        _show(diagnose(path), None if keep is None else str(path), as_json)
    if keep is not None:
        click.echo(f"kept: {path}", err=True)


def _is_directory(target: str) -> bool:
    """Whether it is a path: a connection string has a ``=`` or begins with ``postgres``."""
    from pgdyno.errors import InputError

    if Path(target).is_dir():
        return True
    if "=" in target or target.startswith(("postgres://", "postgresql://")):
        return False
    raise InputError(
        f"{target} is neither a run's directory nor a connection string",
        remedy='write a connection string as "host=db.example dbname=app user=monitor"; `pgdyno runs` lists the runs',
    )


def _purchase(bought: tuple[str, ...], instance: str | None) -> Purchase | None:
    """What is said to be bought; None where nothing is."""
    from pgdyno.diagnose.bought import purchase_of

    return purchase_of(bought, instance) if bought or instance is not None else None


def _providers(cloudwatch: tuple[str, ...]) -> dict[str, Provider]:
    from pgdyno.diagnose.provider import providers_of

    return providers_of(cloudwatch)


def _refuse_metrics(cloudwatch: tuple[str, ...]) -> None:
    """CloudWatch has the minutes of a watch some minutes after it."""
    from pgdyno.errors import InputError

    if cloudwatch:
        raise InputError(
            "--cloudwatch is for a watch that was kept: metrics come some minutes late",
            remedy="watch with --keep DIR, ask for the metrics of that time, and name both",
        )


def _refuse_options_of_a_watch(*given: object) -> None:
    from pgdyno.errors import InputError

    names = ("--for", "--keep")
    for name, value in zip(names, given, strict=True):
        if value:
            raise InputError(
                f"{name} is for a server that is watched", remedy="omit it: a run's record says all that is known"
            )


def _watched(target: str, watch_for: str, bought: tuple[str, ...], instance: str | None, root: Path) -> Path:
    """The directory of a run. What can be refused is refused before the watch."""
    from pgdyno.diagnose.bought import purchase_of
    from pgdyno.diagnose.target import target_of
    from pgdyno.diagnose.watch import check_seconds, watch
    from pgdyno.endpoint import refuse_secrets
    from pgdyno.quantity import parse_seconds

    refuse_secrets(target, "DSN", "diagnose")
    seconds = check_seconds(parse_seconds(watch_for, "--for"))
    purchase = purchase_of(bought, instance)
    return watch(target_of(target), purchase, seconds, root, _tell)


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where the run goes: kept, or gone afterwards."""
    if keep is not None:
        yield keep.absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="pgdyno-diagnose-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tell(left_s: float) -> None:
    """How long it still takes, on a terminal only."""
    if sys.stderr.isatty():
        end = "\r" if left_s > 0.5 else "\n"
        click.echo(f"watching: {left_s:,.0f} s left  {end}", err=True, nl=False)


def _show(found: Diagnosis, directory: str | None, as_json: bool) -> None:
    from pgdyno.diagnose import document, words

    if as_json:
        click.echo(document.document(found, directory).model_dump_json(indent=2))
        return
    for line in words.lines(found, shutil.get_terminal_size((words.WIDTH_MAX, 24)).columns):
        click.echo(line)
