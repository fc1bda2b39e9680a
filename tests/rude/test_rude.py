"""Each row of the rude table, on real servers and real volumes. A few minutes; the table of what failed comes at the end."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgdyno.server.cluster import Cluster
from tests.analysis.synthetic import Plan, make_experiment
from tests.conftest import find_system_postgres
from tests.drive.secured import Encrypted, encrypted_server, missing_openssl
from tests.rude import answered, service, world
from tests.rude.row import Answered, Row
from tests.size import formats
from tests.size.formats import Interval
from tests.support.pooler import PROGRAM, Pooler, pgbouncer
from tests.support.servers import cluster

__all__ = ["cluster"]

FINDINGS = {f"A{number}" for number in range(1, 30)} | {
    f"S-{part}{number}"
    for part, count in (("A", 1), ("B", 2), ("C", 7), ("D", 4), ("E", 13))
    for number in range(1, count + 1)
}
ROWS = {row.finding: row for row in (*world.ROWS, *service.ROWS)}
DEADLINE_S = 400
"""Of a row: a load of millions of rows, or two short runs."""


def test_every_finding_has_a_row() -> None:
    texts = [row.finding for row in (*world.ROWS, *service.ROWS, *answered.ROWS)]
    assert sorted(texts) == sorted(FINDINGS)


@pytest.mark.parametrize("row", answered.ROWS, ids=lambda row: row.finding)
def test_the_guide_answers(row: Answered, repository: Path) -> None:
    text = re.sub(r"\s+", " ", (repository / row.page).read_text())
    assert row.sentence in text, f"{row.page} does not say so any more"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of measured loads."""
    folder = tmp_path_factory.mktemp("files")
    folder.chmod(0o755)
    load = [Interval(900, 300, 8000, 4000)] * 120
    text = formats.iostat_12_7(load, 1)
    (folder / "load.txt").write_text(text)
    (folder / "peak-first.txt").write_text(
        formats.iostat_12_7([Interval(1, 9, 8, 700)] * 2, 1, first=Interval(0, 800, 0, 409_600))
    )
    loop = [line.replace(formats.DEVICE, "loop0") for line in text.splitlines() if line.startswith(formats.DEVICE)]
    lines, rows = text.replace(formats.DEVICE, "vda").splitlines(), iter(loop)
    (folder / "two-devices.txt").write_text(
        "\n".join(part for line in lines for part in ([line, next(rows)] if line.startswith("vda") else [line]))
    )
    uneven = json.loads(formats.cloudwatch(load, 60))
    for key in ("Timestamps", "Values"):
        uneven["MetricDataResults"][0][key] = uneven["MetricDataResults"][0][key][70:]
    (folder / "uneven-end.json").write_text(json.dumps(uneven))
    spoilt = json.loads(formats.cloudwatch(load, 60))
    spoilt["MetricDataResults"][0]["Values"][3] = float("nan")
    (folder / "nan.json").write_text(json.dumps(spoilt))
    return folder


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_experiment(tmp_path_factory.mktemp("recorded"), Plan(replicates=1))


@pytest.fixture(scope="module")
def encrypted() -> Iterator[Encrypted | None]:
    """A server with TLS, which the embedded one has not; None where there is none."""
    system_postgres = find_system_postgres()
    if missing_openssl() is not None or system_postgres is None:
        yield None
        return
    with encrypted_server(system_postgres) as started:
        yield started


@pytest.fixture(scope="module")
def pooled(cluster: Cluster) -> Iterator[Pooler | None]:
    """PgBouncer in transaction mode before the server; None where there is none."""
    if PROGRAM is None:
        yield None
        return
    with pgbouncer(cluster) as started:
        yield started


@pytest.fixture
def surroundings(
    row: Row,
    files: Path,
    experiment: Path,
    repository: Path,
    cluster: Cluster,
    pooled: Pooler | None,
    encrypted: Encrypted | None,
) -> Iterator[dict[str, str]]:
    """Environment of a row's scripts; its database is gone afterwards.

    Servers are asked for by name, so that they start before a test's leaks are looked for.
    """
    document = {
        "PYTHON": sys.executable,
        "PGDYNO": f"{sys.executable} -m pgdyno",
        "PYTHONPATH": str(repository),
        "REPOSITORY": str(repository),
        "FILES": str(files),
        "EXPERIMENT": str(experiment),
        "D": "",
    }
    if row.needs == "volumes" and (os.geteuid() != 0 or not Path("/dev/fuse").exists()):
        pytest.skip("needs root and /dev/fuse")
    if row.needs in ("nothing", "volumes"):
        yield document
        return
    document["DB"] = name = f"rude_{row.finding.replace('-', '_').lower()}"
    server, dsn = cluster, cluster.dsn
    if row.needs == "tls":
        if encrypted is None:
            pytest.skip("needs openssl and an installed PostgreSQL 14 to 18 (apt install postgresql openssl)")
        server, dsn = encrypted.cluster, " ".join(f"{key}={value}" for key, value in encrypted.server.items())
        document |= encrypted.password | {"CA": str(encrypted.root)}
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")
    document["D"] = dsn.replace("dbname=postgres", f"dbname={name}")
    if row.needs == "pooler":
        if pooled is None:
            pytest.skip("needs pgbouncer (apt install pgbouncer)")
        document["P"] = pooled.dsn(name)
    yield document
    with server.connect() as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.mark.bench
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_a_rude_finding_stays_answered(row: Row, surroundings: dict[str, str], state_dir: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="rude-") as name:
        folder = Path(name).resolve()
        folder.chmod(0o755)
        done = _bash(row.run, folder, surroundings)
        after = _bash(row.state, folder, surroundings) if row.state else None
        _bash("pgdyno volume detach rude; umount store", folder, surroundings)
    text = done.stdout + done.stderr
    shown = f"{row.finding}: {row.what}\nexit code {done.returncode}\n{text}"
    assert "Traceback" not in text and "this is a bug" not in text, shown
    for words in row.says:
        assert re.search(words, text), f"`{words}` is not said\n{shown}"
    for words in row.never:
        assert not re.search(words, text), f"`{words}` is said\n{shown}"
    assert done.returncode in row.codes, f"not one of {row.codes}\n{shown}"
    if after is not None and row.then:
        assert after.stdout.strip() == row.then, f"{after.stdout}{after.stderr}\n{shown}"


def _bash(script: str, folder: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", f'. "$REPOSITORY/tests/rude/shell.sh"\n{script}'],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
