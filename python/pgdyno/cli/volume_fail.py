"""``pgdyno volume fail`` and ``heal``: faults injected into an attached volume."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pgdyno.cli import parameters

from .terminal import print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..machine.volume import AttachedVolume

_Command = TypeVar("_Command", bound=Callable[..., Any])

_name = click.argument("name", shell_complete=parameters.attached_volumes)
_json = click.option("--json", "as_json", is_flag=True, help="Print the volume's faults as one JSON document.")
_member = click.option(
    "--member", type=parameters.Integer(min=0), metavar="N", help="Only this member of an array, from 0 [all]."
)
_for = click.option("--for", "duration", metavar="TIME", help="Time until the fault ends [until `volume heal`].")


def _shares(command: _Command) -> _Command:
    """The options for the share of reads and of writes."""
    writes = click.option("--writes", default="100%", show_default=True, metavar="SHARE", help="Share of the writes.")
    reads = click.option("--reads", default="100%", show_default=True, metavar="SHARE", help="Share of the reads.")
    return reads(writes(command))


@click.group()
@_name
@click.pass_context
def fail(context: click.Context, name: str) -> None:
    """Inject faults into the attached volume NAME.

    A fault affects the requests that the volume's limits let pass while it is in force; faults add up. `pgdyno volume
    heal` ends them, and so does detaching the volume. They are in the volume's submit log and are replayed with it.

    \b
    Example:
      sudo pgdyno volume fail data pause --for 70s
      sudo pgdyno volume fail data latency --add 500ms --reads 50%
      sudo pgdyno volume heal data
    """
    context.obj = name


@fail.command()
@click.pass_obj
@_for
@_member
@_json
def pause(name: str, duration: str | None, member: int | None, as_json: bool) -> None:
    """Let no request of the volume pass.

    This is what AWS FIS calls `aws:ebs:pause-volume-io`. Requests wait and do not fail. After a whole minute
    VolumeStalledIOCheck is 1.

    \b
    Example:
      sudo pgdyno volume fail data pause --for 70s
    """
    _inject(name, "pause", duration, member, as_json)


@fail.command()
@click.pass_obj
@click.option("--add", metavar="TIME", help="Time that is added to a request, for example 500ms.")
@_shares
@click.option(
    "--scenario",
    type=click.Choice(["sustained", "increasing", "intermittent", "decreasing"]),
    help="One of the 15-minute scenarios of AWS FIS instead.",
)
@_for
@_member
@_json
def latency(
    name: str,
    add: str | None,
    reads: str,
    writes: str,
    scenario: str | None,
    duration: str | None,
    member: int | None,
    as_json: bool,
) -> None:
    """Add latency to a share of the requests of the volume.

    This is what AWS FIS calls `aws:ebs:volume-io-latency`, with its ranges: 1 ms (io2) or 10 ms (other types) to 60 s, on 0.1 to
    100 per cent of the reads and of the writes.

    \b
    Example:
      sudo pgdyno volume fail data latency --add 500ms --reads 50% --for 15min
      sudo pgdyno volume fail data latency --scenario intermittent
    """
    from ..base.errors import InputError

    if (add is None) == (scenario is None):
        raise InputError("latency needs either --add or --scenario", remedy="use for example --add 500ms")
    if scenario is not None:
        if duration is not None:
            raise InputError("a scenario has its own duration", remedy="omit --for")
        _inject(name, {"scenario": scenario}, None, member, as_json)
        return
    kind = {"latency": {"added_ns": _latency_ns(add or "")}}
    _inject(name, kind, duration, member, as_json, reads=reads, writes=writes)


@fail.command()
@click.pass_obj
@_shares
@click.option("--offset", metavar="SIZE", help="Begin of the range that fails [0].")
@click.option("--length", metavar="SIZE", help="Length of the range that fails [the rest of the volume].")
@click.option("--once", is_flag=True, help="Fail one request only.")
@_for
@_json
def error(
    name: str,
    reads: str,
    writes: str,
    offset: str | None,
    length: str | None,
    once: bool,
    duration: str | None,
    as_json: bool,
) -> None:
    """Let requests of the volume end with an I/O error.

    The file system and PostgreSQL see EIO. The content of a write that failed is undefined: here it is the new content.

    \b
    Example:
      sudo pgdyno volume fail wal error --reads 0% --once
      sudo pgdyno volume fail data error --offset 1GiB --length 64KiB
    """
    from ..base.errors import InputError
    from ..base.quantity import parse_bytes

    begin = 0 if offset is None else parse_bytes(offset, "--offset")
    if length is None and offset is not None:
        raise InputError("a range that begins at --offset needs its length", remedy="add for example --length 64KiB")
    size = None if length is None else parse_bytes(length, "--length")
    kind = {"error": {"offset": begin, "bytes": size, "once": once}}
    _inject(name, kind, duration, None, as_json, reads=reads, writes=writes)


@fail.command()
@click.pass_obj
@_member
@_json
def lose(name: str, member: int | None, as_json: bool) -> None:
    """Lose the volume and its content: every request ends with an I/O error.

    A lost volume cannot be healed, only detached. An array is lost with one of its volumes; RAID-10 continues while every
    stripe has a copy.

    \b
    Example:
      sudo pgdyno volume fail data lose
      sudo pgdyno volume fail mirror lose --member 0
    """
    _inject(name, "lose", None, member, as_json)


@click.command()
@_name
@_json
def heal(name: str, as_json: bool) -> None:
    """End all faults of the volume NAME. A lost volume stays lost.

    \b
    Example:
      sudo pgdyno volume heal data
    """
    from ..machine import preflight, volume

    result = volume.find(name)
    preflight.require_root("healing a volume")
    _print(result, result.heal(), as_json)


def _inject(
    name: str,
    kind: str | dict[str, Any],
    duration: str | None,
    member: int | None,
    as_json: bool,
    *,
    reads: str = "100%",
    writes: str = "100%",
) -> None:
    from ..base.errors import InputError
    from ..base.quantity import parse_seconds
    from ..machine import preflight, volume

    fault: dict[str, Any] = {
        "kind": kind,
        "member": member,
        "reads_ppm": _share_ppm(reads, "--reads"),
        "writes_ppm": _share_ppm(writes, "--writes"),
    }
    if fault["reads_ppm"] == fault["writes_ppm"] == 0:
        raise InputError("the fault hits neither reads nor writes", remedy="use for example --reads 50%")
    if duration is not None:
        fault["for_ns"] = round(parse_seconds(duration, "--for") * 1e9)
        if fault["for_ns"] <= 0:
            raise InputError(
                "a fault of no length does nothing", remedy="use for example --for 2s", code="volume.fault.empty"
            )
    result = volume.find(name)
    preflight.require_root("injecting faults into a volume")
    _print(result, result.fail(fault), as_json)


def _print(volume: AttachedVolume, answer: Mapping[str, Any], as_json: bool) -> None:
    from .volume_notes import faults

    if as_json:
        print_json(dict(answer))
        return
    for line in list(faults(answer["faults"], volume.spec)) or ["no fault"]:
        click.echo(f"{volume.name}: {line}")


def _share_ppm(text: str, flag: str) -> int:
    """Parts per million of ``50%`` or ``0.1%``."""
    from ..base.errors import InputError
    from ..base.quantity import share_ppm

    number = share_ppm(text)
    if number is None:
        raise InputError(f"{flag}: `{text}` is not a share", remedy="use per cent from 0% to 100%, for example 0.1%")
    return number


def _latency_ns(text: str) -> int:
    from ..base.errors import InputError
    from ..base.quantity import LATENCY_NS, in_units

    units = in_units(text, LATENCY_NS)
    if units is None:
        raise InputError(f"--add: `{text}` is not a time", remedy="use for example 500ms or 15s")
    return round(units)
