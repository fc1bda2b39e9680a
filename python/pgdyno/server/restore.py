"""PostgreSQL's own programs that restore: psql, pg_restore, vacuumdb, run as the server's user.

psql gets its script by standard input, so that the server's user need not be able to read the file. What the programs say is
kept without statements and values, which may hold secrets: messages of errors alone.
"""

from __future__ import annotations

import contextlib
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..base import engine
from ..base.errors import InputError, PgdynoError
from ..machine.launch import user_prefix
from .binaries import PgBinaries
from .cluster import Cluster
from .dump import DumpFacts, facts_of

POLL_S = 0.5
"""How often it is looked how far a program is."""
SETTINGS = {
    "log_min_error_statement": "panic",
    "wal_recycle": "off",
    "wal_init_zero": "off",
    "min_wal_size": "32MB",
    "max_logical_replication_workers": "0",
}
"""While restoring: statements may hold secrets and are not logged; WAL that is not needed any more is removed, as it would
become part of every clone; a subscription in the files of a cluster takes nothing from production's publisher."""
_MESSAGE = re.compile(
    r"(?:ERROR|FATAL|PANIC):\s+(.*)|(?:psql|pg_restore|vacuumdb): error: (?!could not execute query)(.*)"
)
_SHOWN = 12
NO_SPACE = "No space left on device"


@dataclass
class RestoreLog:
    """Errors that programs reported."""

    messages: list[str]

    @classmethod
    def of(cls, lines: Iterable[str]) -> RestoreLog:
        """The messages among what a program wrote."""
        results = (_MESSAGE.search(line) for line in lines)
        return cls([(result[1] or result[2]).strip() for result in results if result is not None])

    def without(self, allowed: Sequence[str]) -> RestoreLog:
        """Those that no allowed text explains."""
        return RestoreLog([message for message in self.messages if not any(text in message for text in allowed)])

    def words(self) -> str:
        """Each once, with how often it came."""
        counts = Counter(self.messages)
        shown = [f"{text} ({times} times)" if times > 1 else text for text, times in counts.most_common(_SHOWN)]
        more = [f"{len(counts) - _SHOWN} more"] if len(counts) > _SHOWN else []
        return "; ".join([*shown, *more])


class Restorer:
    """Runs the programs against one cluster. ``log`` receives the messages of errors, ``watch`` the process ids, ``look`` is called
    while a program works.
    """

    def __init__(
        self,
        cluster: Cluster,
        log: Path,
        *,
        watch: Callable[[int], None] = lambda _pid: None,
        look: Callable[[], None] = lambda: None,
    ) -> None:
        self.cluster = cluster
        self.log = log
        self._watch = watch
        self._look = look

    def psql(self, script: Iterable[bytes], database: str, *, stop: bool = False) -> RestoreLog:
        """Run a script; with ``stop`` until its first error. Returns the errors."""
        options = ["-X", "-q", "-o", "/dev/null", "-v", f"ON_ERROR_STOP={int(stop)}", "-f", "-"]
        return self._run("psql", [*options, "-d", database], script)

    def pg_restore(self, archive: Path, options: Sequence[str], database: str) -> RestoreLog:
        """Restore an archive. Returns the errors; it goes on after each."""
        return self._run("pg_restore", [*options, "-d", database, str(archive)], reads=archive)

    def vacuumdb(self, database: str, jobs: int, *options: str) -> None:
        """Vacuum or analyze. :class:`PgdynoError` when it fails."""
        log = self._run("vacuumdb", ["-q", "-j", str(jobs), *options, "-d", database])
        if log.messages:
            raise PgdynoError(
                f"the restored tables cannot be vacuumed: {log.words()}",
                remedy="look at the restored tables' definitions",
            )

    def _run(
        self, name: str, arguments: Sequence[str], script: Iterable[bytes] | None = None, *, reads: Path | None = None
    ) -> RestoreLog:
        cluster = self.cluster
        where = ["-h", str(cluster.socket_dir), "-p", str(cluster.port), "-U", "postgres", "--no-password"]
        process = subprocess.Popen(
            engine.child([*_as_user(cluster, reads), str(cluster.binaries.program(name)), *where, *arguments]),
            env=cluster.binaries.environment | {"PGCLIENTENCODING": "UTF8", "PGAPPNAME": f"pgdyno {name}"},
            cwd="/",
            stdin=subprocess.DEVNULL if script is None else subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        lines: list[str] = []
        assert process.stderr is not None
        hearing = threading.Thread(target=_hear, args=(process.stderr, lines), daemon=True)
        hearing.start()
        feeding = _ScriptWriter(process.stdin, script) if script is not None and process.stdin is not None else None
        try:
            self._watch(process.pid)
            while not _ended(process):
                self._look()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            hearing.join(10.0)
            process.stderr.close()
        if feeding is not None:
            feeding.join()
        log = RestoreLog.of(lines)
        # A full disk is one of the errors.
        with contextlib.suppress(OSError), self.log.open("a", encoding="utf-8") as file:
            file.writelines(f"{name}: {message}\n" for message in log.messages)
        if process.returncode != 0 and not log.messages:
            log.messages.append(f"{name} ended with exit code {process.returncode}")
        return log


class _ScriptWriter(threading.Thread):
    """Writes a script into a program; if that ends early, its own messages say why."""

    def __init__(self, into: IO[bytes], script: Iterable[bytes]) -> None:
        super().__init__(daemon=True)
        self._into, self._script = into, script
        self._error: Exception | None = None
        self.start()

    def run(self) -> None:
        """Feed it."""
        try:
            for piece in self._script:
                self._into.write(piece)
        except BrokenPipeError:
            pass
        except (OSError, EOFError) as error:  # of the source: it is torn
            self._error = error
        finally:
            with contextlib.suppress(OSError):
                self._into.close()

    def join(self, timeout: float | None = None) -> None:
        """Wait. :class:`InputError` when the source could not be read to its end."""
        super().join(timeout)
        if self._error is not None:
            raise InputError(f"the dump cannot be read to its end: {self._error}", remedy="copy it again") from None


def archive_facts(binaries: PgBinaries, archive: Path) -> DumpFacts:
    """What an archive of pg_dump says. :class:`InputError` when this pg_restore cannot read it."""
    facts = facts_of(_printed(binaries, ["--create", "--schema-only", "-f", "-", str(archive)]))
    listed = list(_printed(binaries, ["-l", str(archive)]))
    facts.statistics = any(b" STATISTICS DATA " in line for line in listed)
    facts.complete = True
    named = next((line for line in listed if line.startswith(b";     dbname:")), None)
    if named is not None:
        facts.database = named.partition(b":")[2].strip().decode()
    return facts


def require_readable(binaries: PgBinaries, archive: Path) -> None:
    """Read an archive to its end. :class:`InputError` when it is torn."""
    for _ in _printed(binaries, ["--data-only", "-f", "/dev/null", str(archive)]):
        pass


def _printed(binaries: PgBinaries, arguments: Sequence[str]) -> Iterator[bytes]:
    with subprocess.Popen(
        engine.child([str(binaries.program("pg_restore")), *arguments]),
        env=binaries.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines: list[str] = []
        hearing = threading.Thread(target=_hear, args=(process.stderr, lines), daemon=True)
        hearing.start()
        yield from process.stdout
        hearing.join()
        if process.wait() != 0:
            why = "; ".join(line.strip() for line in lines) or f"exit code {process.returncode}"
            raise InputError(
                f"pg_restore {binaries.version} cannot read {arguments[-1]}: {why}",
                remedy="copy the archive again if it is torn; an archive of a newer pg_dump needs a newer PostgreSQL (--pg-bin)",
                code="dump.unreadable",
                data={"pg_restore": binaries.version, "says": why},
            )


def _as_user(cluster: Cluster, reads: Path | None) -> list[str]:
    """What stands before a program so that it runs as the server's user and ends with this process.

    An archive that only the caller may read is read by the caller: pg_restore, other than psql, runs no command of it.
    """
    prefix = user_prefix(cluster.user)
    if not prefix:
        return []
    if reads is not None and not _may_read(prefix, reads):
        return []
    return [*prefix[:-1], "--pdeathsig", "keep", prefix[-1]]


def _may_read(prefix: Sequence[str], archive: Path) -> bool:
    inside = archive / "toc.dat" if archive.is_dir() else archive
    done = subprocess.run([*prefix, "test", "-r", str(inside)], capture_output=True, check=False, cwd="/")
    return done.returncode == 0


def _hear(stream: IO[bytes], lines: list[str]) -> None:
    lines.extend(line.decode(errors="replace") for line in stream)


def _ended(process: subprocess.Popen[bytes]) -> bool:
    try:
        process.wait(POLL_S)
    except subprocess.TimeoutExpired:
        return False
    return True
