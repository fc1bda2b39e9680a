"""What the shell offers for an argument: types of volumes, attached volumes, snapshots, recorded experiments.

Completion prints nothing if it fails: an error in the middle of a command line would not help.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    import click


def volume_types(_ctx: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Types of volumes, with what they are."""
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
