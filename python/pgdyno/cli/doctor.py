"""``pgdyno doctor``: what this machine can do, and the clean-up after killed runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.cli.streams import drawn
from pgdyno.cli.terminal import print_json

from ..base.text import printable

if TYPE_CHECKING:
    from ..machine.doctor import HostCheck

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@click.command()
@click.option(
    "--clean", "wants_clean", is_flag=True, help="Remove what killed runs left behind. Volumes in use are not touched."
)
@click.option(
    "--uninstall",
    "wants_uninstall",
    is_flag=True,
    help="Remove everything that pgdyno keeps outside of its package. Refused while a volume is attached or a run lasts.",
)
@click.option(
    "--hosts",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Check the hosts of a hosts file instead: engine, PostgreSQL, clocks, cores, open ports.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(wants_clean: bool, wants_uninstall: bool, hosts: Path | None, as_json: bool) -> None:
    """Check what this machine can do, and clean up after killed runs.

    Prints a remedy for each problem. The exit code is 0 if this machine can compare emulated volumes, and 3 if something is
    missing. --clean skips the checks: it removes the mounts, loop devices, control groups and processes that killed runs left
    behind, restores kernel settings, and prints what it did. --uninstall does the same, then removes the copies of PostgreSQL, the
    state and the images that lie outside of the package, and prints how to remove the package itself. Results stay. --hosts
    checks whether other hosts can drive a load together; the exit code is 0 if all can.

    \b
    Example:
      pgdyno doctor
      sudo pgdyno doctor --clean
      pgdyno doctor --hosts hosts.toml
    """
    if wants_clean and wants_uninstall:
        raise click.UsageError("--uninstall cleans up, too: omit --clean")
    if hosts is not None and (wants_clean or wants_uninstall):
        raise click.UsageError("--hosts only checks: omit --clean and --uninstall")
    if wants_clean or wants_uninstall:
        _remove_all(as_json) if wants_uninstall else _clean(as_json)
        return
    from ..base.errors import EXIT_HOST, EXIT_OK
    from ..machine.doctor import able, examine

    if hosts is None:
        checks, good, bad = examine(), "Everything needed is here.", "Missing for emulated volumes"
    else:
        from ..hosts.examine import examine as examine_hosts

        checks, good, bad = examine_hosts(hosts), "All hosts can drive.", "In the way of a load from several hosts"
    works = able(checks)
    if as_json:
        print_json({"able": works, "checks": [check.to_json() for check in checks]})
    else:
        _print(checks)
        lacking = [check.name for check in checks if check.status == "fail"]
        click.echo(f"\n{good}" if works else f"\n{bad}: {', '.join(lacking)}.")
    click.get_current_context().exit(EXIT_OK if works else EXIT_HOST)


def _clean(as_json: bool) -> None:
    from ..machine.clean import clean

    done = clean()
    if as_json:
        print_json({"done": done})
        return
    for line in done:
        click.echo(line)
    if not done:
        click.echo("nothing to clean up", err=True)


def _remove_all(as_json: bool) -> None:
    from pgdyno.cli import uninstall

    from ..base import installation

    done, kept = uninstall.remove()
    then = installation.how_to_uninstall()
    if as_json:
        print_json({"done": done, "kept": kept, "then": then})
        return
    for line in (*done, *kept):
        click.echo(line)
    click.echo(f"{'' if done else 'nothing to remove; '}to remove the package, {then}", err=True)


def _print(checks: list[HostCheck]) -> None:
    width = max(len(check.name) for check in checks)
    for check in checks:
        status = click.style(check.status.ljust(4), fg=_COLOURS[check.status])
        click.echo(f"{status}  {check.name.ljust(width)}  {printable(check.found)}", file=drawn(sys.stdout))
        if check.remedy and check.status != "ok":
            click.echo(f"{' ' * (width + 8)}remedy: {check.remedy}")
