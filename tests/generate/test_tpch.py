"""TPC-H's files: dbgen's, byte for byte; PostgreSQL takes them; nothing that is not whole is left."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from psycopg import sql

from pgdyno.base import engine
from pgdyno.cli import main as cli_main
from pgdyno.workload.generated import TPCH, TPCH_MEMORY_BYTES, tpch_definitions

from ..support.disk import small_disk

if TYPE_CHECKING:
    from pgdyno.server.cluster import Cluster

ROWS = {
    "customer": 1_500,
    "lineitem": 60_175,
    "nation": 25,
    "orders": 15_000,
    "part": 2_000,
    "partsupp": 8_000,
    "region": 5,
    "supplier": 100,
}
"""At scale 0.01."""
SHA256 = {
    0.009: {
        "customer": "81edad9afc04d1e6fa6d4a7351096f3c509f378d3d730d4b835bbc10dd6b6d64",
        "lineitem": "f48b4806c3bd8acd4c991ef2f9371c5cbe709f8583539320adcfdc9b1ee1d76e",
        "nation": "66f96949939fa8fdf1c4ffed1e5f6c2842fe11a14b51fdc6ed1e17460031e8c5",
        "orders": "4f3952e8d81923a252717fdd86554f5311115b87ee0397cca99a54fce6a6ee11",
        "part": "f6442eaf0fe9d68322fbc84f4b9a04b15ef9c6c46946a981a48947820b41d32b",
        "partsupp": "6907e50939547116dfce5fa63906e2d583276fa6d8dc91f73bf10dfc4f12a5fc",
        "region": "6022658d673924389b54dcb70fa8c3d6da1b0d7afa3c1c017bab62a019df404f",
        "supplier": "d03b85e2fc959fcf6503e3cc2e463727bf4e8ebb90820ee5435f4b53a8056b3d",
    },
    0.01: {
        "customer": "6b690cce995cb715861ebf2c77aa02c61406e3a0ddcd3326d1ecfa969b9163f8",
        "lineitem": "ee411d23efcd2943ef70489799e37dfc24543dbd03b461a88e16fd82a95765e4",
        "nation": "66f96949939fa8fdf1c4ffed1e5f6c2842fe11a14b51fdc6ed1e17460031e8c5",
        "orders": "07cc8b362fda6d0b503c4d6c5d228817548e0688a3b21b590c52bb47b7b79c0f",
        "part": "896e14465325110dd9cf05a16972028a58be0010959262176ecd97f4db1702f8",
        "partsupp": "5947b5ebab042b49148f82c1324ad122f7e0d98cfadcbef12da0a5e239e09e79",
        "region": "6022658d673924389b54dcb70fa8c3d6da1b0d7afa3c1c017bab62a019df404f",
        "supplier": "9dc1002ee774699a092ed83ba278caf466d62a15d7e35bb6ed9293475528734b",
    },
}
"""What dbgen 2.14.0 writes, compiled with gcc 12 on x86-64 (`dbgen -s 0.009`). Of 0.009 products with decimals are not exact:
150,000 times it is a little less than 1,350."""
UPDATES_SHA256 = {
    0.01: {
        "delete.1": "4ce4ed89cd87c533647c12b92147da06e7d264184b7d57b1b7488794eb7bb9f3",
        "delete.2": "fc3a9c71ed3b6719cc168e6acafcaf92aaa1625065d6c3a55d4f4f179aeb08dd",
        "lineitem.tbl.u1": "b05bdc0089ae2c14d1923f5f491a3f8017686bc7842053d39799c45026e19acf",
        "lineitem.tbl.u2": "f4f380631028d2b529e69c5f19597f15dfab136c295098f54fa1518a517f1bb0",
        "orders.tbl.u1": "eb9134d683b291367d5fb16fb8abb8a363ed77366a6813658aeab9a8920219dd",
        "orders.tbl.u2": "7096dacb79e9f582308b4fab750e45989be392b4f4231aa2a41f998f30334027",
    },
    0.017: {
        "delete.1": "2c4de80a7a4c56ea449dcfa94e4ec11d18d7374cc2e795851f65616cb95d1b04",
        "delete.2": "3cf2e887995f9fcf9c7e505fe125e3dc0dce8066e558ee2f3d777f3ac9d8ff9e",
        "delete.3": "1c6b58fa530eb2aa4959e7a3de12016624eaefdd68a71fc262596e7e5d517edb",
        "lineitem.tbl.u1": "2aca20327631a8216011091f6cbe3382d9a509b7e56036e14fa3b641fa8f1309",
        "lineitem.tbl.u2": "08fad72a1e83e4bbaea7a8e4fccb19dd34bd7242a53809ffd28e107364d828a4",
        "lineitem.tbl.u3": "5bea77c093d81e011549f72415a750d43d26fcc83a70f05b66859ce1bd9355ae",
        "orders.tbl.u1": "0b70d62fd11872646bb49319cf48d1604f8cca478fc0a62672650961107b846e",
        "orders.tbl.u2": "c7442f7c938c513454ef7aa3f9583e5e89dbfbd5ef7748c1881ac0ff773d4602",
        "orders.tbl.u3": "864a64451259d0523d31be0959738d114433ac8338fb512c9483d93bc85eecfe",
    },
}
"""What dbgen 2.14.0 writes with `-U 2` and `-U 3`. A set at 0.01 has 10 orders and not 15: it rounds down to tens."""
SHA1_AT_1 = {
    "customer": "bee45e9c240e87d63786324696b1babad18a5e0b",
    "lineitem": "4802b21c9975d965aa11893214a879df0d8d9e01",
    "nation": "f361dffd3d927f5aa64e71cff91458fb5ea1315f",
    "orders": "00d790a08a116feec992cea14272a4f1e5c55925",
    "part": "06615f7433806c06162af49c7bc27166c64a31d6",
    "partsupp": "db0fcb935904765a9085505b5feb5260752f8bf3",
    "region": "ac61de9604337e791f1bdbcef8f0cdcc21b01514",
    "supplier": "baad047476a2720d99b707b6f7a7c9e50c170d5a",
}
"""Of dbgen's files at scale 1, from TESTING.md of tpchgen's repository."""
KEYS = {
    "customer": "c_custkey",
    "lineitem": "l_orderkey, l_linenumber",
    "nation": "n_nationkey",
    "orders": "o_orderkey",
    "part": "p_partkey",
    "partsupp": "ps_partkey, ps_suppkey",
    "region": "r_regionkey",
    "supplier": "s_suppkey",
}
REFERENCES = (
    ("nation", "n_regionkey", "region"),
    ("supplier", "s_nationkey", "nation"),
    ("customer", "c_nationkey", "nation"),
    ("partsupp", "ps_partkey", "part"),
    ("partsupp", "ps_suppkey", "supplier"),
    ("orders", "o_custkey", "customer"),
    ("lineitem", "l_orderkey", "orders"),
    ("lineitem", "l_partkey, l_suppkey", "partsupp"),
)


def made(*words: str) -> dict[str, Any]:
    """Generate files; what was said of them."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert cli_main.run(["data", "generate", "tpch", *words, "--json"]) == 0
    document: dict[str, Any] = json.loads(out.getvalue())
    return document


def hashes(folder: Path, algorithm: str) -> dict[str, str]:
    """The hash of each file by its name without the suffix."""
    hashes = {}
    for path in sorted(folder.iterdir()):
        assert path.suffix == ".tbl"
        with path.open("rb") as file:
            hashes[path.stem] = hashlib.file_digest(file, algorithm).hexdigest()
    return hashes


@pytest.mark.parametrize("scale", SHA256)
def test_files_are_those_of_dbgen(scale: float, tmp_path: Path) -> None:
    summary = made(f"--scale={scale}", f"--out={tmp_path}", "--threads=3")
    assert hashes(tmp_path, "sha256") == SHA256[scale]
    if scale == 0.01:
        assert {file["name"]: file["rows"] for file in summary["files"]} == ROWS
    assert "seed" not in summary, "dbgen has none to choose"
    assert summary["bytes"] == sum(path.stat().st_size for path in tmp_path.iterdir())
    # What estimates are fed; numbers have fewer digits than at scale 1.
    assert TPCH.input_bytes(TPCH.files, scale) == pytest.approx(summary["bytes"], rel=0.05)


@pytest.mark.parametrize("scale", UPDATES_SHA256)
def test_what_is_refreshed_is_what_dbgen_makes(scale: float, tmp_path: Path) -> None:
    known = UPDATES_SHA256[scale]
    summary = made(f"--scale={scale}", f"--updates={len(known) // 3}", f"--out={tmp_path}")
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.iterdir()} == known
    assert summary["rows"] == sum(path.read_bytes().count(b"\n") for path in tmp_path.iterdir())


@pytest.mark.bench
def test_files_of_scale_1_are_those_of_dbgen_in_little_memory(tmp_path: Path) -> None:
    command = [str(engine.checked()), "generate", "tpch", "--scale=1", f"--out={tmp_path}", "--threads=8"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    print(f"peak memory {usage.ru_maxrss >> 10} MiB, CPU {usage.ru_utime + usage.ru_stime:.1f} s")
    assert usage.ru_maxrss << 10 < TPCH_MEMORY_BYTES
    assert hashes(tmp_path, "sha1") == SHA1_AT_1
    assert {path.stem: path.stat().st_size for path in tmp_path.iterdir()} == TPCH.bytes_at_1


def test_tables_of_a_load_take_the_files_and_their_keys_hold(cluster: Cluster, tmp_path: Path) -> None:
    made("--scale=0.01", f"--out={tmp_path}", "--for-copy")
    with cluster.connect() as connection:
        connection.execute(tpch_definitions(list(ROWS), 0.01).encode())
        for table, rows in ROWS.items():
            copy = sql.SQL("COPY {} FROM STDIN (DELIMITER '|')").format(sql.Identifier(table))
            with connection.cursor() as cursor:
                with cursor.copy(copy) as lines:
                    lines.write((tmp_path / f"{table}.tbl").read_bytes())
                assert cursor.rowcount == rows
            connection.execute(f"ALTER TABLE {table} ADD PRIMARY KEY ({KEYS[table]})".encode())
        for table, columns, other in REFERENCES:
            connection.execute(f"ALTER TABLE {table} ADD FOREIGN KEY ({columns}) REFERENCES {other}".encode())
        nullable = connection.execute(
            "SELECT count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid"
            " WHERE relname = ANY(%s) AND attnum > 0 AND NOT attnotnull",
            [list(ROWS)],
        ).fetchone()
        columns = connection.execute(
            "SELECT count(*) FROM information_schema.columns WHERE table_name = ANY(%s)", [list(ROWS)]
        ).fetchone()
    assert (nullable, columns) == ((0,), (61,))


def test_keys_that_an_integer_does_not_hold_are_larger_ones() -> None:
    assert "l_orderkey integer NOT NULL" in tpch_definitions(["lineitem"], 300)
    assert "l_orderkey bigint NOT NULL" in tpch_definitions(["lineitem"], 1000)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--scale=0.0005"], "--scale"),
        (["--scale=1001"], "--scale"),
        (["--scale=nan"], "--scale"),
        (["--scale=0.0015"], "--scale: 0.0015 is not a whole number of thousandths"),
        (["--scale=0.01", "--file=order"], "there is no file order"),
        (["--scale=0.006", "--updates=1"], "a refresh set has no order at this scale"),
        (["--scale=0.01", "--updates=1001"], "--updates"),
        (["--scale=1", "--updates=1", "--answers"], "--answers and --updates are different files"),
    ],
)
def test_what_cannot_be_made_is_refused(
    words: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_main.run(["data", "generate", "tpch", f"--out={tmp_path / 'files'}", *words]) == 2
    err = capsys.readouterr().err
    assert said in err and "remedy:" in err
    assert not (tmp_path / "files").exists()


def test_a_file_that_is_there_is_replaced_only_on_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "region.tbl").write_text("mine")
    words = ["data", "generate", "tpch", "--scale=0.001", f"--out={tmp_path}", "--file=region", "--file=nation.tbl"]
    assert cli_main.run(words) == 2
    err = capsys.readouterr().err
    assert "region.tbl is there already" in err and "--overwrite" in err
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]
    assert cli_main.run([*words, "--overwrite"]) == 0
    assert hashes(tmp_path, "sha256") == {name: SHA256[0.01][name] for name in ("nation", "region")}


def test_a_disk_is_not_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: SimpleNamespace(free=2**30))
    assert (
        cli_main.run(["data", "generate", "tpch", "--scale=2", "--file=lineitem", f"--out={tmp_path / 'files'}"]) == 3
    )
    assert "has 1.0 GiB left" in capsys.readouterr().err


@pytest.mark.needs_root
def test_a_full_disk_leaves_only_whole_files(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8) as folder:
        command = [str(engine.checked()), "generate", "tpch", "--scale=0.02", f"--out={folder}", "--threads=2"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 2
        assert "No space left on device" in ended.stderr and "free some space" in ended.stderr
        whole = [json.loads(line)["file"]["path"] for line in ended.stdout.splitlines() if '"file"' in line]
        assert sorted(str(path) for path in folder.iterdir()) == sorted(whole)


def test_an_interrupted_file_is_removed(tmp_path: Path) -> None:
    command = [str(engine.checked()), "generate", "tpch", "--scale=20", f"--out={tmp_path}", "--file=lineitem"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        while json.loads(process.stdout.readline())["progress"]["rows"] == 0:
            pass
        assert [path.name for path in tmp_path.iterdir()] == ["lineitem.tbl.partial"]
        process.send_signal(signal.SIGINT)
        assert "interrupted" in process.stderr.read()
        assert process.wait(60) != 0
    assert list(tmp_path.iterdir()) == []
