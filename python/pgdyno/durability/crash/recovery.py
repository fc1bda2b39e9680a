"""A recording of a recovery: what a cut left is put on new volumes, and the server that recovers from it is recorded.

A cut of such a recording comes during the recovery of another cut. What must be there is what was acknowledged before the first one:
after that nothing was acknowledged.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from ...base.errors import InputError
from ...machine import paths, program
from ...machine.journal import HostJournal
from ...machine.process import own_name
from ...server.cluster import Cluster
from .book import Book, Name
from .campaign import WORKERS, CampaignResult, make_cuts, workplace
from .examine import boot, point
from .recording import LOG_FILE, SETTINGS, SIZE_BYTES, STATES, Operation, Recording, mounted, require_room, volumes

KIND = "recovery"
"""The only operation of a recording of one."""
CUTS_1_IN = 10
"""One cut in this number comes during the recovery from another one."""
CUTS_OF_ONE = 34
"""Cuts of one recovery at most; it has few contents that differ, and takes a second."""


def cut(
    recording: Recording, reading: str, seed: int, cuts: int, *, tell: Callable[[CampaignResult], None] = lambda _: None
) -> CampaignResult:
    """Examine ``cuts`` contents of a recording, one in ten of them from cuts during the recovery from another one.

    There are none of these when one of the others fails unexplained, from which a server may not recover, and when the recording is that of a recovery.
    """
    is_recovery = any(operation.kind == KIND for operation in recording.operations)
    again = 0 if is_recovery else cuts // CUTS_1_IN
    result = make_cuts(recording, reading, seed, cuts, spared=again, tell=tell)
    if again and not result.unexplained:
        result.join(cut_recoveries(recording, reading, seed, again))
        tell(result)
    return result


def cut_recoveries(
    outer: Recording,
    reading: str,
    seed: int,
    cuts: int,
    *,
    workers: int = WORKERS,
    failures_max: int | None = None,
    until: float = math.inf,
) -> CampaignResult:
    """Examine ``cuts`` contents from cuts during recoveries from cuts of ``outer``, each at another instant; ended as :func:`make_cuts` is.

    The recoveries are recorded in folders of ``outer``.
    """
    total = CampaignResult(outer, reading, seed)
    recoveries = -(-cuts // CUTS_OF_ONE)
    for number in range(recoveries):
        left = None if failures_max is None else failures_max - len(total.failed)
        if total.tried >= cuts or (left is not None and left <= 0) or time.monotonic() >= until:
            break
        folder = next(path for at in itertools.count(1) if not (path := outer.folder / f"{KIND}-{at}").exists())
        with contextlib.closing(Book(outer)) as book:
            inner = record_recovery(book, Name(str(outer.folder), reading, seed, number * STATES), folder)
        share = -(-(cuts - total.tried) // (recoveries - number))
        total.join(make_cuts(inner, reading, seed, share, workers=workers, failures_max=left, until=until))
    total.in_recovery = total.tried
    return total


def record_recovery(book: Book, name: Name, folder: Path) -> Recording:
    """Record, in ``folder``, which is made, what a server writes while it recovers from a cut.

    It begins before the file system is mounted, so that its journal is replayed in it, and ends when the server takes connections.
    :class:`InputError` when the name is of no cut. A server that does not recover is an error: its cut has failed already.
    """
    result = book.recording.asked
    folder.mkdir(parents=True)
    journal = HostJournal()
    with contextlib.ExitStack() as stack:
        below = stack.enter_context(journal.directory(paths.state_dir() / own_name(f"crash-{folder.name}")))
        below.chmod(0o755)
        place = stack.enter_context(workplace())
        files = [place / f"{role}.img" for role in result.roles]
        cut = book.cut(name.reading, name.seed, name.number, files, again=True)
        if cut is None:
            raise InputError(f"{name} names no cut: its instant has fewer contents", remedy="name one that was printed")
        attached = stack.enter_context(volumes(result, folder.resolve() / LOG_FILE))
        for item, file in zip(attached, files, strict=True):
            _put(file, item.block_device)
        attached[0].mark("begin")
        begin_ns = time.monotonic_ns()
        mounts = stack.enter_context(mounted(result, attached, below, new=False))
        cluster = Cluster(book.recording.binaries(), mounts[0] / "pgdata", journal=journal)
        stack.callback(cluster.close)
        if result.wal_apart:
            point(cluster, mounts[1])
        boot(cluster)
        cluster.start(SETTINGS | result.settings, given_up=result.given_up)
        end_ns = time.monotonic_ns()
        require_room(attached[0].mark("end"))
        cluster.stop("immediate")
    recovered = replace(
        book.recording,
        folder=folder.resolve(),
        begin_ns=begin_ns,
        end_ns=end_ns,
        operations=[Operation(KIND, begin_ns, end_ns)],
        ledger=book.recording.ledger.until(cut.cut_ns),
    )
    recovered.save()
    return recovered


def _put(file: Path, device: str) -> None:
    """Write a content to a volume that is empty; what is zeros needs no write."""
    extent = ("bs=64K", f"count={SIZE_BYTES >> 16}")
    program.run("dd", f"if={file}", f"of={device}", *extent, "conv=sparse,notrunc,fsync", "status=none")
