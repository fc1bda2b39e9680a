"""A database larger than this machine's memory is kept on a disk, and its clones are compared (issue 21, "Restore").

``PGDYNO_BIG_GB`` is its size; the default is half more than memory, which takes this disk and the better part of an hour.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from pgdyno.base.errors import EXIT_INVALID, EXIT_OK
from pgdyno.machine.memory import meminfo_bytes
from pgdyno.results.kept_database import find_kept

from ..support.commands import pgdyno

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]

TIMES_MEMORY = 1.5
GB = float(os.environ.get("PGDYNO_BIG_GB", TIMES_MEMORY * meminfo_bytes()["MemTotal"] / 1e9))
ROW_BYTES = 1200
"""A thousand bytes of text and its key: seven fit into a page, beside an entry of the index for each."""
ROWS = int(GB * 1e9 / ROW_BYTES)
ROOM = 1.3
"""Times its size that the disk has to have: WAL, until it is trimmed, and what clones write."""
CLIENTS, SECONDS = 16, 20
BEHIND = "store behind the volume"
SCRIPT = f"""
CREATE TABLE things AS SELECT n AS id, repeat(md5(n::text), 31) AS what FROM generate_series(1::bigint, {ROWS}) n;
ALTER TABLE things ADD PRIMARY KEY (id);
"""
READ = f"\\set id random(1, {ROWS})\nSELECT length(what) FROM things WHERE id = :id;\n"


def test_a_database_larger_than_memory_is_kept_and_compared(databases: Path, image_dir: Path, tmp_path: Path) -> None:
    del image_dir
    free = shutil.disk_usage(databases.parent).free
    if free < ROOM * GB * 1e9:
        pytest.skip(f"{GB:.0f} GB need {ROOM * GB:.0f} GB of disk, and {free / 1e9:.0f} GB are free")
    source, script = tmp_path / "big.sql", tmp_path / "read.sql"
    source.write_text(SCRIPT)
    script.write_text(READ)
    size = f"{int(2 * GB) + 4}GiB"
    pgdyno("data", "add", source, "--name", "big", "--size", size, code=EXIT_OK)
    kept = find_kept("big")
    assert kept is not None and kept.size_bytes > 0.95 * GB * 1e9
    on_disk = sum(path.stat().st_blocks * 512 for path in kept.folder.rglob("*"))
    print(f"\n{kept.size_bytes / 1e9:.1f} GB, {on_disk / 1e9:.1f} GB on the disk; kept in {kept.seconds:.0f} s")
    volumes = [f"{name}:size={size}" for name in ("gp3", "io2bx")]
    run = ("-c", str(CLIENTS), "--duration", f"{SECONDS}s", "--warmup", "5s", "--memory", "512MiB", "-n", "1")
    ended = pgdyno(
        "compare", *volumes, "--restore", "big", "--files", f"{script}@1", *run, "--results", tmp_path / "r", "--json"
    )
    assert ended.code in (EXIT_OK, EXIT_INVALID), ended.err
    arms = json.loads(ended.out)["arms"]
    for volume, arm in zip(volumes, arms, strict=True):
        print(
            f"{volume}: {arm['tps']['mean']:.0f} TPS, {arm['disk']['iops']:.0f} IOPS, {arm['why_invalid'] or 'valid'}"
        )
        # Each look-up reads its row; of the index the inner pages alone stay in memory.
        assert arm["disk"]["iops"] > 0.8 * arm["tps"]["mean"] > 0
        # A disk that is slower than the volume is the only reason that may be: then it is said, and its reads are late.
        assert arm["why_invalid"] == [] or any(BEHIND in why for why in arm["why_invalid"])
    pgdyno("data", "remove", "big", "--yes", code=EXIT_OK)
