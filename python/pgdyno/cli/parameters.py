"""Parameters that several commands share: number types, options, and completions of names.

Completion prints nothing if it fails: an error in the middle of a command line would not help.
"""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ..base.errors import InputError

if TYPE_CHECKING:
    from ..hosts.examine import SpreadOptions


class Integer(click.IntRange):
    """A whole number within bounds."""

    name = "integer"

    def _describe_range(self) -> str:
        return _bounds(self)


class Number(click.FloatRange):
    """A number within bounds; ``nan`` and ``inf``, which Python reads as numbers and which no bound stops, are refused."""

    name = "number"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number, or click's error."""
        result = super().convert(value, param, ctx)
        if not math.isfinite(result):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return result

    def _describe_range(self) -> str:
        return _bounds(self)


def _bounds(kind: click.IntRange | click.FloatRange) -> str:
    """The bounds in words; click writes ``x>=1``, and ``x<=None`` without bounds."""
    if kind.min is None:
        return "" if kind.max is None else f"{kind.max} or less"
    return f"{kind.min} or more" if kind.max is None else f"{kind.min} to {kind.max}"


def require_consent(what: str, dsn: str, *, yes_write: bool) -> None:
    """Refuse to send ``what`` to a server of the user's unless its flag says that it may be changed. :class:`InputError`."""
    from ..base.endpoint import public_dsn
    from ..base.errors import InputError

    if not yes_write:
        raise InputError(
            f"this would send {what} to {public_dsn(dsn)}",
            remedy="add --yes-write if the server is a copy that may be changed",
        )


goal = click.option(
    "--goal",
    metavar="CONDITIONS",
    help='Recommend the cheapest that does this, for example "tps>=2000, p99<=20ms" [nearly as fast as the fastest].',
)
protocol = click.option(
    "-M",
    "--protocol",
    type=click.Choice(["simple", "extended", "prepared"]),
    default="prepared",
    show_default=True,
    help="Query protocol.",
)
allow_outside = click.option(
    "--allow-outside",
    multiple=True,
    metavar="KIND:NAME",
    callback=lambda _context, _option, names: names or None,
    help="Allow statements of a capture to reach this outside their database; the refusal names it; repeatable [nothing].",
)
accept_losses = click.option(
    "--accept-losses",
    is_flag=True,
    callback=lambda _context, _option, accepted: accepted or None,
    help="Accept a capture that lacks more than 1% of the statements in its log.",
)
rate = click.option("-R", "--rate", type=Number(), help="Transactions per second of an open loop [closed loop].")


class PathParameter(click.Path):
    """A path that is not empty: an empty one, for example from an unset variable, would mean the working directory."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path. Refused when it is empty."""
        if value == "":
            self.fail("the path is empty.", param, ctx)
        return super().convert(value, param, ctx)


def hosts_of(spread: str | None, keys: Path | None, *, mixed: bool = False) -> SpreadOptions | None:
    """The hosts of ``--spread`` and ``--keys``; None without ``--spread``."""
    if spread is None:
        if keys is not None or mixed:
            raise InputError("--keys and --mixed say more about --spread", remedy="add --spread tls://HOST:PORT")
        return None
    if keys is None:
        raise InputError("--spread needs --keys", remedy="name the directory that `pgdyno hosts keys` wrote")
    from ..hosts import dask
    from ..hosts.examine import SpreadOptions

    return SpreadOptions(dask.of_scheduler(spread, "--spread"), keys, mixed)


def volume_types(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Volume types, each with its summary."""
    from ..base import engine
    from ..base.errors import PgdynoError

    with contextlib.suppress(PgdynoError, OSError):
        types = engine.run_json(["volume", "types"])["types"]
        return [
            CompletionItem(type_["type"], help=type_["summary"])
            for type_ in types
            if type_["type"].startswith(incomplete)
        ]
    return []


def attached_volumes(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the attached volumes, with their specifications."""
    from ..base.errors import PgdynoError
    from ..machine import volume

    with contextlib.suppress(PgdynoError, OSError):
        volumes = [list_volume for list_volume in volume.list_volumes() if list_volume.name.startswith(incomplete)]
        return [CompletionItem(volume.name, help=str(volume.spec["spec"])) for volume in volumes]
    return []


def snapshots(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the snapshots, with the volumes that they were taken of."""
    from ..base.errors import PgdynoError
    from ..machine import snapshot

    with contextlib.suppress(PgdynoError, OSError):
        snapshots = [
            list_snapshot for list_snapshot in snapshot.list_snapshots() if list_snapshot.name.startswith(incomplete)
        ]
        return [CompletionItem(snapshot.name, help=f"{snapshot.volume}, {snapshot.spec}") for snapshot in snapshots]
    return []


def experiments(ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Names of the experiments in the results folder, the newest first."""
    from ..results.names import results_root

    root = results_root(ctx.params.get("root"))
    names = sorted((path.parent.name for path in root.glob("*/experiment.json")), reverse=True)
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
