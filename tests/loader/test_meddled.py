"""Loads that are killed while another session empties, drops and alters their table. Run by ``make bench ONLY=loader``.

An end that says success is held against the table: all rows of the file, but for those that a partial DELETE took out.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
from collections import Counter
from typing import TYPE_CHECKING

import psycopg
import pytest

from .database import Database
from .test_bench import PAUSES_S_MAX, TIMEOUT_S, children
from .test_killed import loading

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

pytestmark = pytest.mark.bench

KILLS = int(os.environ.get("PGDYNO_LOAD_KILLS", "300"))
SEED = 11
ROWS = 20_000
EVENTS_MAX = 9
RUNS_MAX = 12
MADE = "CREATE TABLE meddled (id int, name text, points int); CREATE INDEX ON meddled (id)"
ACTS = {
    "truncate": "TRUNCATE meddled",
    "delete": "DELETE FROM meddled",
    "delete some": "DELETE FROM meddled WHERE id > 0 AND id % 7 = 0",
    "drop": f"DROP TABLE meddled; {MADE}",
    "swap": f"DROP TABLE IF EXISTS other; ALTER TABLE meddled RENAME TO other; {MADE}",
    "rewrite": "ALTER TABLE meddled ALTER points TYPE bigint",
    "rewrite back": "ALTER TABLE meddled ALTER points TYPE int",
    "vacuum full": "VACUUM FULL meddled",
    "refill": "TRUNCATE meddled; INSERT INTO meddled SELECT -n, 'by hand', 0 FROM generate_series(1, 30000) n",
}
STATISTICS_S = 1.0
"""So late may the server's statistics say that rows were deleted; what comes later than that before the end is noticed."""
ENDED = "SELECT extract(epoch FROM max(ended))::float8 FROM pgdyno_load.job"
DONE, REFUSED = "done", "refused"


class Meddler:
    """What another session does, drawn from a seed, and what of it changes how many rows there should be."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._random = random.Random(SEED)
        self.acts: Counter[str] = Counter()
        self.kills = 0
        self.last_s = 0.0
        """When the last act came, by the server's clock."""
        self.deleted = 0
        """Rows of the file that a partial DELETE took out."""

    def act(self) -> None:
        """One of :data:`ACTS`; one that meets a lock for too long, or no table, did nothing."""
        name = self._random.choice(list(ACTS))
        with psycopg.connect(self._database.dsn, autocommit=True) as connection:
            connection.execute("SET lock_timeout = '3s'")
            errors = (psycopg.errors.LockNotAvailable, psycopg.errors.UndefinedTable, psycopg.errors.DeadlockDetected)
            with contextlib.suppress(*errors):
                if name == "vacuum full":
                    connection.execute(ACTS[name].encode())
                    self.acts[name] += 1
                    return
                with connection.transaction():
                    # The load's end takes a lock that waits for this one, so that one of the two comes first.
                    connection.execute("LOCK TABLE meddled IN SHARE ROW EXCLUSIVE MODE")
                    for statement in ACTS[name].split("; "):
                        cursor = connection.execute(statement.encode())
                        if name == "delete some":
                            self.deleted += cursor.rowcount
                    row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
                    assert row is not None
                self.last_s = row[0] + (STATISTICS_S if "delete" in name else 0.0)
                self.acts[name] += 1

    def pause(self, process: subprocess.Popen[bytes]) -> bool:
        """Let a load run for a while. False when it came to its end."""
        assert process.stdout is not None
        for _ in range(self._random.randrange(EVENTS_MAX)):
            if not process.stdout.readline():
                break
        with contextlib.suppress(Exception):
            process.wait(self._random.uniform(0.0, self._random.choice(PAUSES_S_MAX)))
            return False
        return True

    def chance(self, share: float) -> bool:
        """True for this part of the calls."""
        return self._random.random() < share

    def run(self, file: Path, *words: str) -> str | None:
        """One run: killed (None), done or refused."""
        rate = f"{self._random.choice((256, 512, 2048))}KiB"
        with loading(self._database, file, "--table", "meddled", "--rate", rate, *words) as process:
            running = self.pause(process)
            if running and self.chance(0.6):
                self.act()
                running = self.pause(process)
            if running and self.chance(0.6):
                for pid in [process.pid, *children(process.pid)]:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
                self.kills += 1
                process.communicate(timeout=TIMEOUT_S)
                return None
            out, err = process.communicate(timeout=TIMEOUT_S)
        if process.returncode == 0:
            last = json.loads(out.splitlines()[-1]) if out else {}
            assert last.get("rows_loaded", ROWS) == ROWS
            return DONE
        assert b"Traceback" not in err, err.decode()
        assert b"remedy:" in err or b'"remedy"' in err, err.decode()
        return REFUSED


def test_no_success_is_said_of_rows_that_are_not_there(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "meddled.csv"
    file.write_text("id,name,points\n" + "".join(f"{n},name {n},{n % 9}\n" for n in range(1, ROWS + 1)))
    meddler, ended = Meddler(database), Counter[str]()
    while meddler.kills < KILLS:
        database.run(f"DROP TABLE IF EXISTS meddled, other; DROP SCHEMA IF EXISTS pgdyno_load CASCADE; {MADE}")
        meddler.deleted, words = 0, ()
        for _ in range(RUNS_MAX):
            text = meddler.run(file, *words)
            if text is not None:
                ended[text] += 1
            if text == DONE and meddler.last_s > database.one(ENDED):
                ended["changed after its end"] += 1
                break
            if text == DONE:
                rows = database.one("SELECT count(DISTINCT id) FROM meddled WHERE id > 0")
                assert rows >= ROWS - meddler.deleted, (meddler.acts, rows, meddler.deleted)
                assert rows == database.one("SELECT count(*) FROM meddled WHERE id > 0"), "none is doubled"
                break
            if text is None and meddler.chance(0.4):
                meddler.act()
            if text == REFUSED:
                # What the remedy says; rows are counted from here on.
                words, meddler.deleted = ("--abandon", "--truncate"), 0
            elif words:
                words = ()
    print(f"\n{meddler.kills} kills, {sum(meddler.acts.values())} acts: {dict(meddler.acts)}; ended: {dict(ended)}")
    assert ended[DONE]
