"""One cut: its content is mounted from a device of its own, PostgreSQL recovers, and everything that was promised is checked."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from ...base.errors import PgdynoError
from ...machine import program
from ...machine.journal import HostJournal
from ...machine.mounts import loops
from ...machine.waiting import wait_until
from ...server.binaries import PgBinaries
from ...server.cluster import Cluster
from . import archive, known, ledger
from .book import Book, Cut
from .recording import SETTINGS

CHECKS = ("mount", "start", "ledger", "structure", "log", "stop", "checksums", "file system")
"""What is checked, in this order. A state that cannot be mounted, or a server that does not start, ends it."""
CATALOG_EVERY = 10
"""In one cut of ten the structure of the catalogue is checked too."""

_BAD_LOG = re.compile(r"PANIC|invalid page|could not (?:read|access)|corrupt")
_FREE_SPACE = re.compile(r'invalid page in block \d+ of relation "?[^"\s]*_fsm"?; zeroing out page')
"""The map of free space is not in the WAL. A torn page of it is made empty when it is read, and filled again by vacuum
(PostgreSQL, src/backend/storage/freespace/README); of any other file the server must not read a page that is damaged. PostgreSQL before 18 writes the name without quotation marks."""
_INTERRUPTED = re.compile(
    r"HINT:  This probably means that some data is corrupted and you will have to use the last backup for recovery"
)
"""What a server says whenever its recovery was interrupted before (src/backend/access/transam/xlog.c), as a power cut does."""
_RECOVERY = {
    "autovacuum_naptime": "1h",
    "restart_after_crash": "off",
    "max_wal_senders": "0",
    "wal_level": "minimal",
    "bgwriter_lru_maxpages": "0",
}
_FSYNC_OFF = {"fsync": "off"}
"""The clone is thrown away: nothing that recovery writes has to be durable."""
_INDEXES = """
SELECT c.relname, bt_index_parent_check(index => c.oid, heapallindexed => true, rootdescend => true)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am a ON a.oid = c.relam
WHERE a.amname = 'btree' AND c.relpersistence = 'p' AND i.indisvalid AND i.indisready AND {which}
"""
_TABLES = """
SELECT c.relname, v.blkno, v.msg FROM pg_class c, LATERAL verify_heapam(relation => c.oid) v
WHERE c.relkind IN ('r', 't', 'm') AND c.relpersistence = 'p' AND {which}
"""
_XFS = b"XFSB"
"""An XFS begins with it, and is mounted once at a time by its UUID, which all contents of a recording share."""
_HEADINGS = ("Pass ", "Phase ", "        - ")
"""How e2fsck and xfs_repair begin lines that say what they look at."""
PATIENCE = "-c lock_timeout=30s -c statement_timeout=10min"
"""Deadlines of the session that examines a recovered server. It is alone there, so only a transaction that was prepared before the cut, and that
the damaged server cannot end, holds a lock."""
_LET_GO_S = 30.0
_OURS, _ALL = "c.relnamespace = 'public'::regnamespace", "true"


@dataclass
class CutOutcome:
    """What a cut came to. ``failures`` has what is wrong, by the name of the check that found it."""

    cut: Cut
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    """How long each step took."""

    def to_json(self) -> dict[str, Any]:
        """As a document."""
        return {
            "id": str(self.cut.name),
            "stratum": self.cut.stratum,
            "position": self.cut.position,
            "hash": self.cut.hash,
            "undecided": len(self.cut.undecided),
            "harmed": len(self.cut.harmed),
            "failures": self.failures,
        }


class Examiner:
    """A place where contents are mounted, one after the other."""

    def __init__(self, book: Book, folder: Path) -> None:
        self._book, self._folder = book, folder
        self._recording = book.recording
        self._binaries: PgBinaries = book.recording.binaries()
        self._journal = HostJournal()
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)

    @property
    def files(self) -> list[Path]:
        """Where the content of each volume is put."""
        return [self._folder / f"{role}.img" for role in self._recording.asked.roles]

    def try_cut(
        self, reading: str, seed: int, number: int, *, again: bool = False, whole: Sequence[int] = ()
    ) -> CutOutcome | None:
        """Make the cut of this number and examine it; ``None`` when its content was tried before."""
        began = time.perf_counter()
        cut = self._book.cut(reading, seed, number, self.files, again=again, whole=whole)
        if cut is None or not (cut.new or again):
            return None
        outcome = CutOutcome(cut)
        outcome.seconds["content"] = time.perf_counter() - began
        try:
            self._examine(outcome, whole_catalog=number % CATALOG_EVERY == 0)
        finally:
            for file in self.files:
                file.unlink(missing_ok=True)
        return outcome

    def _examine(self, outcome: CutOutcome, *, whole_catalog: bool) -> None:
        with contextlib.ExitStack() as stack:
            mounts = []
            for role, file in zip(self._recording.asked.roles, self.files, strict=True):
                with _timed(outcome, "mount"):
                    text = mount(file, self._folder / role)
                if text is not None:
                    outcome.failures["mount"] = text
                    return
                mounts.append(self._folder / role)
                stack.callback(self._unmount, outcome, mounts[-1])
                with _timed(outcome, "mount"):
                    _read_ahead(mounts[-1])
            self._recover(outcome, mounts, whole_catalog=whole_catalog)
        with _timed(outcome, "file system"):
            for file in self.files:
                text = check_file_system(file, self._recording.asked.file_system)
                if text is not None:
                    outcome.failures["file system"] = text

    def _unmount(self, outcome: CutOutcome, target: Path) -> None:
        with _timed(outcome, "unmount"):
            program.run("umount", target)
            # A process that made a mount namespace of its own meanwhile keeps a copy of the mount until it ends.
            file = str(target.with_suffix(".img"))
            wait_until(lambda: all(loop.backing_file != file for loop in loops()), _LET_GO_S)

    def _recover(self, outcome: CutOutcome, mounts: Sequence[Path], *, whole_catalog: bool) -> None:
        result = self._recording.asked
        folder = archive.BACKUP if result.archive else "pgdata"
        cluster = Cluster(self._binaries, mounts[0] / folder, journal=self._journal)
        with contextlib.closing(cluster):
            try:
                with _timed(outcome, "start"):
                    restoring = {}
                    if result.archive:
                        wal = mounts[1] if len(mounts) > 1 else mounts[0] / "pgdata"
                        in_place = bool(ledger.tablespace(cluster))
                        restoring = archive.restorable(cluster.data_dir, wal / "pg_wal", in_place=in_place)
                    elif len(mounts) > 1:
                        point(cluster, mounts[1])
                    boot(cluster)
                    cluster.start(SETTINGS | result.settings | _RECOVERY | restoring, given_up=_FSYNC_OFF)
            except (PgdynoError, OSError) as error:
                outcome.failures["start"] = _worst(cluster) or str(error)
                return
            try:
                self._ask(outcome, cluster, whole_catalog=whole_catalog)
            except (psycopg.Error, PgdynoError) as error:
                # Whatever the queries before the checks meet.
                outcome.failures.setdefault("ledger", _first_line(error))
            bad = _worst(cluster)
            if bad is not None:
                outcome.failures["log"] = bad
            try:
                with _timed(outcome, "stop"):
                    cluster.stop("fast")
            except PgdynoError as error:
                outcome.failures["stop"] = _first_line(error)
                return
            with _timed(outcome, "checksums"):
                checksums = self._checksums(cluster)
            if checksums is not None:
                outcome.failures["checksums"] = checksums

    def _ask(self, outcome: CutOutcome, cluster: Cluster, *, whole_catalog: bool) -> None:
        with cluster.connect(options=PATIENCE) as connection:
            with _timed(outcome, "ledger"):
                try:
                    examine = ledger.examine(connection, self._recording.ledger, outcome.cut.cut_ns)
                except psycopg.Error as error:
                    examine = [_first_line(error)]
                if examine:
                    outcome.failures["ledger"] = "; ".join([*examine, *_warned(cluster)])
            with _timed(outcome, "structure"):
                text = structure(connection, whole_catalog=whole_catalog)
            if text is not None:
                outcome.failures["structure"] = text

    def _checksums(self, cluster: Cluster) -> str | None:
        """pg_checksums on the stopped cluster; what it found, or None."""
        from ...machine.launch import user_prefix

        command = [
            *user_prefix(cluster.user),
            str(self._binaries.program("pg_checksums")),
            "--check",
            "-D",
            str(cluster.data_dir),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=self._binaries.environment)
        return None if done.returncode == 0 else done.stderr.strip().splitlines()[0]


def structure(connection: psycopg.Connection[tuple[Any, ...]], *, whole_catalog: bool) -> str | None:
    """Look at all tables and B-trees; what is wrong with the first that is damaged, or None."""
    which = _ALL if whole_catalog else _OURS
    try:
        connection.execute(_INDEXES.format(which=which).encode()).fetchall()
        damaged = connection.execute(_TABLES.format(which=which).encode()).fetchall()
    except psycopg.Error as error:
        return _first_line(error)
    return f"{damaged[0][0]}, block {damaged[0][1]}: {damaged[0][2]}" if damaged else None


def mount(file: Path, target: Path) -> str | None:
    """Mount a content, which replays the file system's journal; what was said if that fails."""
    target.mkdir(exist_ok=True)
    with file.open("rb") as opened:
        options = "loop,nouuid" if opened.read(len(_XFS)) == _XFS else "loop"
    return program.failure("mount", "-o", options, file, target)


def _read_ahead(target: Path) -> None:
    """Have the kernel read all files at once: one after the other, a thousand small ones would each wait for the device."""
    for folder, _, names in os.walk(target):
        for name in names:
            with contextlib.suppress(OSError):  # damage is for the checks to find
                handle = os.open(
                    os.path.join(folder, name),  # noqa: PTH118 - a thousand times a cut
                    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK,
                )
                try:
                    os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_WILLNEED)
                finally:
                    os.close(handle)


def check_file_system(file: Path, kind: str) -> str | None:
    """Look for damage in an unmounted file system; what is wrong, or None."""
    command: list[str | Path] = ["xfs_repair", "-n", "-f", file] if kind == "xfs" else ["e2fsck", "-f", "-n", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    lines = [
        line for line in (done.stdout + done.stderr).splitlines() if line.strip() and not line.startswith(_HEADINGS)
    ]
    return lines[0] if lines else f"{command[0]} ended with {done.returncode}"


def boot(cluster: Cluster) -> None:
    """Remove the lock file of the server that was cut. Its process ended with the power; here another server may have its number, and then
    PostgreSQL would not start.
    """
    (cluster.data_dir / "postmaster.pid").unlink(missing_ok=True)


def point(cluster: Cluster, wal_mount: Path) -> None:
    """Let the cluster find its WAL, which is mounted elsewhere than when it was recorded."""
    link = cluster.data_dir / "pg_wal"
    link.unlink(missing_ok=True)  # a cut may have come between the two lines, when a recovery was recorded
    link.symlink_to(wal_mount / "pg_wal")


def _worst(cluster: Cluster) -> str | None:
    """The first line of the server's log that a sound recovery does not write; a FATAL one if the server did not start."""
    lines = cluster.log_tail(lines=10_000).splitlines()
    text = bad_line(lines)
    if text is None and not cluster.alive:
        text = next((line for line in lines if "FATAL" in line), None)
    return None if text is None else text.partition("] ")[2] or text


def _warned(cluster: Cluster) -> list[str]:
    """What the server warned of while it recovered, which is often why something is missing; nothing where it did not."""
    pattern = known.warned(cluster.log_tail(lines=10_000).splitlines())
    return [] if pattern is None else [f"{known.SAID}{pattern}"]


def bad_line(lines: Sequence[str]) -> str | None:
    """The first line of a server's log that reports damage or a panic."""
    harmless = (_FREE_SPACE, _INTERRUPTED)
    bad = (line for line in lines if _BAD_LOG.search(line))
    return next((line for line in bad if not any(item.search(line) for item in harmless)), None)


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


@contextlib.contextmanager
def _timed(outcome: CutOutcome, step: str) -> Iterator[None]:
    began = time.perf_counter()
    try:
        yield
    finally:
        outcome.seconds[step] += time.perf_counter() - began
