"""Writes the directory of a run, or of a load: under another name until it is whole, then never again.

What was killed leaves ``<name>.partial``, which readers ignore and a new attempt replaces.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from ..base import owner
from ..base.errors import HostError, PgdynoError
from . import tables
from .names import EXPERIMENT_FILE, FAILED, LOGS, PARTIAL, slug
from .record import ExperimentRecord, LoadRecord, RunRecord

if TYPE_CHECKING:
    import pyarrow as pa


class DirectoryWriter:
    """Collects files in a directory that gets its name when it is whole.

    ``table`` and ``file`` put things into the partial directory. Nothing here runs while something is being measured.
    """

    def __init__(self, final_path: Path, what: str) -> None:
        self.final_path = final_path
        self.path = final_path.with_name(final_path.name + PARTIAL)
        """The directory to write to; it no longer exists after ``finish``."""
        if self.final_path.exists():
            raise PgdynoError(
                f"{self.final_path} is a finished {what} and is never rewritten", remedy="start a new experiment"
            )
        with _explained(self.path):
            shutil.rmtree(self.path, ignore_errors=True)
            owner.make_directories(self.path.parent)
            self.path.mkdir()
            owner.give(self.path)

    def table(self, name: str, table: pa.Table) -> Path:
        """Write a table of :data:`pgdyno.results.tables.TABLES` as Parquet; its columns are checked."""
        import pyarrow.parquet as pq

        conforming = tables.conform(name, table)
        path = self.file(name + ".parquet")
        with _explained(path):
            pq.write_table(conforming, path, compression="zstd")
        return path

    def file(self, relative: str) -> Path:
        """Path of another file of it (``logs/pgbench.log``); its directory exists, the file is the caller's."""
        path = self.path / relative
        if ".." in Path(relative).parts or path == self.path or Path(relative).is_absolute():
            raise PgdynoError(f"{relative} is not inside the run's directory", remedy="this is a bug in pgdyno")
        with _explained(path):
            owner.make_directories(path.parent)
        return path

    def abandon(self) -> None:
        """Remove the partial directory: what it is about failed, and nothing of it is worth keeping."""
        shutil.rmtree(self.path, ignore_errors=True)

    def fail(self) -> Path | None:
        """Keep the logs of what failed, below ``failed`` of its experiment, and remove the rest; None where there are none."""
        kept = self.final_path.parents[1] / FAILED / self.final_path.name
        logs = self.path / LOGS
        try:
            if not any(logs.rglob("*")):
                return None
            shutil.rmtree(kept, ignore_errors=True)  # of an earlier attempt
            owner.make_directories(kept.parent)
            logs.rename(kept)
            owner.give(kept)
        except OSError:  # the failure is what has to be reported
            return None
        finally:
            self.abandon()
        return kept

    def explain(self, error: Exception) -> None:
        """:meth:`fail`, and say in the remedy of ``error`` where the logs are."""
        kept = self.fail()
        if kept is not None and isinstance(error, PgdynoError):
            place = f"the logs are kept in {shlex.quote(str(kept))}"
            error.remedy = f"{error.remedy}; {place}" if error.remedy else place

    def _finish(self, name: str, text: str) -> Path:
        """Write the record, make all of it durable, give it its name. Returns the finished directory."""
        with _explained(self.path):
            (self.path / name).write_text(text + "\n")
            owner.give(self.path)
            _make_durable(self.path)
            self.path.rename(self.final_path)
            _fsync(self.final_path.parent)
        return self.final_path


class RunWriter(DirectoryWriter):
    """Collects the files of one run."""

    def __init__(self, root: Path, experiment_id: str, run_name: str) -> None:
        super().__init__(root / experiment_id / "runs" / run_name, "run")

    def finish(self, record: RunRecord) -> Path:
        """Write ``run.json`` last, make all of it durable, give it its name. Returns the finished directory."""
        if (record.experiment_id, record.run_id) != (self.final_path.parents[1].name, self.final_path.name):
            raise PgdynoError(
                f"the record of {record.experiment_id}/{record.run_id} was given to {self.final_path}",
                remedy="this is a bug in pgdyno",
            )
        return self._finish("run.json", record.model_dump_json(indent=1))


class LoadWriter(DirectoryWriter):
    """Collects the files of one load, below ``loads`` of its experiment."""

    def __init__(self, directory: Path, title: str) -> None:
        before = len(list((directory / "loads").glob("*")))
        super().__init__(directory / "loads" / f"{before:02d}-{slug(title)}", "load")

    def finish(self, record: LoadRecord) -> Path:
        """Write ``load.json`` last, make all of it durable, give it its name. Returns the finished directory."""
        return self._finish("load.json", record.model_dump_json(indent=1))


def write_experiment(root: Path, record: ExperimentRecord) -> Path:
    """Write ``experiment.json`` and return the experiment's directory; an experiment that exists is refused."""
    directory = root / record.experiment_id
    with _explained(directory):
        owner.make_directories(directory)
        path = directory / EXPERIMENT_FILE
        there = PgdynoError(f"{path} exists and is never rewritten", remedy="start the experiment again in a second")
        partial = path.with_name(path.name + PARTIAL)
        # Two processes that begin the same experiment in one second would each take the directory for its own.
        try:
            partial.touch(exist_ok=False)
        except FileExistsError:
            raise there from None
        if path.exists():
            partial.unlink()
            raise there
        partial.write_text(record.model_dump_json(indent=1) + "\n")
        owner.give(partial)
        _fsync(partial)
        partial.rename(path)
        _fsync(directory)
    return directory


@contextlib.contextmanager
def held(directory: Path) -> Iterator[None]:
    """Keep every other process from making runs of this experiment; :class:`HostError` when one does, or has removed it."""
    path = directory / EXPERIMENT_FILE
    with contextlib.ExitStack() as stack:
        try:
            # Nothing is written to it, but NFS gives an exclusive lock only to who may write.
            file = stack.enter_context(path.open("r+b"))
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except FileNotFoundError:
            raise _gone(directory) from None
        except BlockingIOError:
            raise HostError(
                f"another pgdyno makes the runs of {directory}", remedy="wait until it has ended, or end it"
            ) from None
        except OSError as error:
            raise HostError(
                f"{path} cannot be locked: {error.strerror or error}",
                remedy="copy the directory to a writable place, or name another one with --results",
            ) from error
        if not path.exists():  # removed between the two
            raise _gone(directory)
        yield


def other_experiments() -> dict[int, Path]:
    """Process -> directory of the experiments whose runs other processes make on this machine now, by the locks of :func:`held`.

    What cannot be looked at (another user's process) is left out.
    """
    document = {}
    for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
        words = line.split()  # 1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF
        if words[1:2] != ["FLOCK"] or words[3] != "WRITE" or int(words[4]) in (os.getpid(), -1, 0):
            continue
        with contextlib.suppress(OSError):
            for opened in Path(f"/proc/{words[4]}/fd").iterdir():
                with contextlib.suppress(OSError):
                    file = opened.readlink()
                    if file.name == EXPERIMENT_FILE:
                        document[int(words[4])] = file.parent
    return document


def _gone(directory: Path) -> HostError:
    return HostError(
        f"{directory} is gone: the pgdyno that started it ended before its first run", remedy="start it again"
    )


def _make_durable(directory: Path) -> None:
    """Make durable every file below, then every directory, the deepest first."""
    for parent, _, files in os.walk(directory, topdown=False):
        for name in files:
            _fsync(Path(parent, name))
        _fsync(Path(parent))


def _fsync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostError(
            f"results cannot be written: {error.strerror or error} ({error.filename or path})",
            remedy="free some space, or name another folder with --results",
        ) from error
