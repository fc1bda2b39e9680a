"""``--spread``, ``--keys`` and ``--mixed``, of the commands whose work other hosts can do."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from ..hosts.examine import SpreadOptions


def hosts_of(spread: str | None, keys: Path | None, *, mixed: bool = False) -> SpreadOptions | None:
    """Which hosts they name; None without ``--spread``."""
    from ..hosts import dask
    from ..hosts.examine import SpreadOptions

    if spread is None:
        if keys is not None or mixed:
            raise InputError("--keys and --mixed say more about --spread", remedy="add --spread tls://HOST:PORT")
        return None
    if keys is None:
        raise InputError("--spread needs --keys", remedy="name the directory that `pgdyno hosts keys` wrote")
    return SpreadOptions(dask.of_scheduler(spread, "--spread"), keys, mixed)
