"""What programs that measure pgdyno have in common: a record that is kept as it grows, claims on it, a page, an exit code."""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel

from pgdyno.base import engine
from pgdyno.base.errors import PgdynoError
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tools.fidelity.claim import Claim


class Kept(BaseModel):
    """A record in one JSON file that is written whole after each step, so that an interrupted bench goes on."""

    def save(self, path: Path) -> None:
        """Write it whole, or not at all."""
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(".partial")
        unfinished.write_text(self.model_dump_json(indent=1) + "\n", encoding="utf-8")
        unfinished.replace(path)

    @classmethod
    def load(cls, path: Path) -> Self | None:
        """The one that is kept; None where there is none."""
        return cls.model_validate_json(path.read_text(encoding="utf-8")) if path.is_file() else None

    @classmethod
    def require(cls, path: Path, bench: str) -> Self:
        """The one that is kept; :class:`PgdynoError` with the command that measures it where there is none."""
        document = cls.load(path)
        if document is None:
            raise none_yet(bench)
        return document


class OfServer(Kept):
    """A record of a server on emulated volumes. Its results stand in one table where engine, server and machine are the same."""

    build_hash: str
    postgres: str
    kernel: str
    cores: int

    @classmethod
    def here(cls, postgres: str, **result: Any) -> Self:
        """An empty one, of this machine and this engine; ``asked`` are its other facts."""
        cores, kernel, build_hash = here()
        return cls(build_hash=build_hash, postgres=postgres, kernel=kernel, cores=cores, **result)

    def facts(self) -> dict[str, Any]:
        """What two records must have in common so that one goes on with the other: of the kernel its version, not who built it."""
        return self.model_dump(include={"build_hash", "postgres", "cores"}) | {"kernel": self.kernel.partition("-")[0]}

    def resumed(self, path: Path) -> Self:
        """The record at ``path`` if it goes on with this empty one; else this one, and that one is kept under the name of its engine."""
        kept = self.load(path)
        if kept is None:
            return self
        if kept.facts() == self.facts():
            return kept
        path.replace(path.with_name(f"{path.stem}-{kept.build_hash}{path.suffix}"))
        return self


class Dated(BaseModel, frozen=True):
    """A record of one measurement, each in a file of its own, and where it was made."""

    begin: datetime
    cores: int
    kernel: str
    build_hash: str
    versions: list[str]

    def save(self, folder: Path) -> Path:
        """Write it as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.begin:%Y%m%d-%H%M%S}.json"
        path.write_text(self.model_dump_json(indent=1), encoding="utf-8")
        return path

    @classmethod
    def latest(cls, folder: Path) -> Self | None:
        """The one that was written last."""
        paths = sorted(folder.glob("*.json"))
        return cls.model_validate_json(paths[-1].read_text(encoding="utf-8")) if paths else None


def here() -> tuple[int, str, str]:
    """Cores, kernel, build of the engine."""
    built = engine.run_json(["version"])
    return os.cpu_count() or 1, platform.release(), str(built["build_hash"])


def now() -> datetime:
    """In whole seconds, UTC."""
    return datetime.now(UTC).replace(microsecond=0)


@contextlib.contextmanager
def state_of_its_own() -> Iterator[Path]:
    """A folder for mounts, with a state directory and images that nobody else's volumes are in.

    All of it is in memory, as ``/run`` is: a journal that is synced for each server and each mount waits for no disk there.
    """
    folder = Path(tempfile.mkdtemp(prefix="pgd-", dir="/dev/shm"))
    folder.chmod(0o755)
    kept = {name: os.environ.get(name) for name in ("PGDYNO_STATE_DIR", "PGDYNO_IMAGE_DIR")}
    os.environ.update(PGDYNO_STATE_DIR=str(folder / "s"), PGDYNO_IMAGE_DIR=str(folder / "i"))
    try:
        yield folder
    finally:
        for name, value in kept.items():
            os.environ.pop(name) if value is None else os.environ.update({name: value})
        shutil.rmtree(folder, ignore_errors=True)


def none_yet(bench: str) -> PgdynoError:
    """What is said where a page is asked for and nothing was measured; ``bench`` is the folder of tests that measures it."""
    return PgdynoError("no record was measured yet", remedy=f"run `make bench ONLY={bench}`")


def ended(run: Callable[[], int]) -> int:
    """The exit code of a program: what ``run`` returns, or that of its error, which is printed.

    A terminated bench ends as an interrupted one does: it takes its volumes and servers down.
    """
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    try:
        return run()
    except PgdynoError as error:
        print(f"{error.message}\n{error.remedy}", file=sys.stderr)
        return error.exit_code


def code(judged: Sequence[Claim]) -> int:
    """The exit code that claims come to: 1 when one does not hold."""
    return 0 if all(claim.holds for claim in judged) else 1


def tried(results: Path, judge: Callable[[Path], Sequence[Claim]]) -> int:
    """The exit code of a trial: measured from its beginning into a file beside the record at ``results``, by ``judge``, its
    claims printed, no page written.
    """
    path = results.with_name("trial.json")
    path.unlink(missing_ok=True)
    judged = judge(path)
    print("\n".join(map(str, judged)))
    return code(judged)


def published(page: Path, text: str, judged: Sequence[Claim]) -> list[Claim]:
    """Write the page of a record, print its claims, and return them."""
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, encoding="utf-8")
    print("\n".join(map(str, judged)))
    return list(judged)


def claims_table(judged: Sequence[Claim]) -> str:
    """The claims as a table of a page."""
    rows = [[claim.name, claim.bar, claim.found, "yes" if claim.holds else "**no**"] for claim in judged]
    return md.table(["claim", "bar", "found", "holds"], rows)
