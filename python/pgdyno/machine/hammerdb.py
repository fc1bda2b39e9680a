"""Where an installed HammerDB is: it drives where a workload asks for it, and is never part of pgdyno."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ..base.errors import HostError

HOME: Final = "HAMMERDB_HOME"
"""Environment variable with the folder of a release."""
PROGRAM: Final = "hammerdbcli"
_REMEDY: Final = (
    f"set {HOME} to the folder of an unpacked release (hammerdb.com), which has {PROGRAM}, bin/ and lib/ in it"
)


def program() -> Path:
    """Its command line. :class:`HostError` where there is none."""
    named = os.environ.get(HOME)
    if not named:
        raise HostError(f"HammerDB is not part of pgdyno, and {HOME} does not say where it is", remedy=_REMEDY)
    path = Path(named).expanduser().absolute() / PROGRAM
    if not path.is_file():
        raise HostError(f"{HOME} names {named}, and there is no {PROGRAM} in it", remedy=_REMEDY)
    if not os.access(path, os.X_OK):
        raise HostError(f"{path} cannot be executed", remedy=f"`chmod +x {path}`")
    return path
