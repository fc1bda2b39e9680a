"""A PostgreSQL of one's own for the length of a command."""

from __future__ import annotations

import contextlib
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..machine import paths
from ..machine.journal import HostJournal
from .binaries import PgBinaries
from .cluster import Cluster


@contextlib.contextmanager
def throwaway(binaries: PgBinaries, settings: Mapping[str, str], parent: Path | None = None) -> Iterator[Cluster]:
    """A new cluster in ``parent``, else where temporary files are, started; nothing of it is left afterwards. What a killed command
    leaves, `pgdyno doctor --clean` finds.

    An ordinary user has no state directory unless ``$PGDYNO_STATE_DIR`` names one; then it is a temporary one too.
    """
    with contextlib.ExitStack() as stack:
        state = paths.state_dir()
        if not _is_ours(state):
            state = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgdyno-state-")))
        journal = HostJournal(state)
        place = (parent or Path(tempfile.gettempdir())).resolve()
        place.mkdir(parents=True, exist_ok=True)
        folder = place / f"pgdyno-{secrets.token_hex(4)}"
        stack.enter_context(journal.directory(folder))
        folder.chmod(0o755)  # the server's user walks through it
        cluster = Cluster(binaries, folder / "data", journal=journal)
        stack.callback(cluster.close)
        cluster.initdb()
        yield stack.enter_context(cluster.running(settings))


def _is_ours(state: Path) -> bool:
    """Whether this user can keep a journal there."""
    with contextlib.suppress(OSError):
        paths.make_state_dir(state)
    return os.access(state, os.W_OK | os.X_OK)
