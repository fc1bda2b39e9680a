"""Running the driver as a user of the engine does: a document in, JSON lines out."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from psycopg.conninfo import conninfo_to_dict

from pgdyno.base import endpoint, engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

TIMEOUT_S = 60.0
PAUSE_MS = 5.0
"""Between two transactions of a client in a closed loop: without it a second of a test is two seconds of CPU, and shows no more."""
PAUSED = {"think": {"ms": PAUSE_MS}}


@dataclass(frozen=True)
class Driven:
    """What a run of the driver said."""

    ready: dict[str, Any]
    seconds: list[dict[str, Any]]
    summary: dict[str, Any]


def spec(scripts: str = "select-only", **more: Any) -> dict[str, Any]:
    """A specification of pgbench's scripts on tables of scale 2, with keys changed or added."""
    chosen = [{"builtin": name} for name in scripts.split(",")]
    made = {"workload": {"pgbench": {"scripts": chosen, "scale": 2}}, "clients": 4, "duration_ms": 1000}
    return made | {"protocol": "prepared", "seed": 3} | more


def environment(dsn: str = "", extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The connection as libpq's variables, and nothing of the caller's own."""
    from psycopg import pq

    variables = {known.keyword.decode(): known.envvar.decode() for known in pq.Conninfo.get_defaults() if known.envvar}
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PG") or name == "PGDYNO_ENGINE"}
    document = {variables[key]: str(value) for key, value in conninfo_to_dict(dsn).items() if key in variables}
    return kept | document | dict(extra or {})


def told(
    dsn: str, document: Mapping[str, Any], extra: Mapping[str, str] | None = None, name: str = "pgdyno drive"
) -> dict[str, Any]:
    """An order with its server: that of ``dsn``, with the keywords of libpq's that ``asked`` has in its place, or as it is."""
    given = document.get("server", {})
    if "keepalive" in given:
        return dict(document)
    parts = {"port": "5432"} | conninfo_to_dict(dsn) | given
    if "host" not in parts:
        return dict(document)
    address = endpoint.ServerAddress(parts["host"], int(parts["port"]), parts.get("hostaddr", ""))
    text = endpoint.described(
        {"dbname": parts["user"]} | {keyword: str(value) for keyword, value in parts.items()},
        address,
        (extra or {}).get("PGPASSWORD", parts.get("password")),
        encrypted=parts.get("sslmode", "disable") != "disable",
    )
    return {**document, "server": text.named(name)}


def drive(dsn: str, document: Mapping[str, Any], extra: Mapping[str, str] | None = None) -> Driven:
    """Run to the end."""
    with driving(dsn, document, extra) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    assert [next(iter(line)) for line in lines[:: len(lines) - 1]] == ["ready", "summary"]
    return Driven(lines[0]["ready"], [line["second"] for line in lines[1:-1]], lines[-1]["summary"])


def refused(
    dsn: str, document: Mapping[str, Any], extra: Mapping[str, str] | None = None, *, code: int = 2
) -> dict[str, str]:
    """Run what ends with an error of the user, 2 before anything was begun; returns its message and remedy."""
    with driving(dsn, document, extra) as process:
        _, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == code, err
    error: dict[str, str] = json.loads(err.splitlines()[-1])["error"]
    return error


@contextlib.contextmanager
def telling(
    command: str,
    asked: Mapping[str, Any],
    env: Mapping[str, str],
    *,
    pass_fds: Sequence[int] = (),
    out: int | IO[Any] = subprocess.PIPE,
) -> Iterator[subprocess.Popen[bytes]]:
    """The engine at a command, once it was told what is asked; it is ended with the block."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(
        [engine.checked(), command], stdin=pipe, stdout=out, stderr=pipe, env=env, pass_fds=pass_fds
    )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(asked).encode() + b"\n")
        process.stdin.flush()
        yield process
    finally:
        process.kill()
        process.wait()


def driving(
    dsn: str, document: Mapping[str, Any], extra: Mapping[str, str] | None = None
) -> contextlib.AbstractContextManager[subprocess.Popen[bytes]]:
    """A driver that runs; it is ended with the block."""
    return telling("drive", told(dsn, document, extra), environment())


def outcome(
    dsn: str, document: Mapping[str, Any], extra: Mapping[str, str] | None = None
) -> tuple[int, list[dict[str, Any]], str]:
    """Run to whatever end: the exit code, the lines, and what went to standard error."""
    with driving(dsn, document, extra) as process:
        out, err = process.communicate(timeout=TIMEOUT_S)
    return process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


def line(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    """The next line that a running driver says: the first is ``ready``, then one comes each second."""
    assert process.stdout is not None
    line: dict[str, Any] = json.loads(process.stdout.readline())
    return line


def summary_of(process: subprocess.Popen[bytes]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The seconds that a running driver still says, and its summary."""
    out, err = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 0, err
    lines = [json.loads(line) for line in out.splitlines()]
    return [line["second"] for line in lines[:-1]], lines[-1]["summary"]


def settled(document: Mapping[str, Any]) -> int:
    """Every transaction of a document that is over."""
    return sum(int(document[key]) for key in ("succeeded", "rolled_back", "failed", "skipped_late", "skipped_ended"))


def own_script(text: str, name: str = "own.sql") -> dict[str, Any]:
    """A workload of one script."""
    return {"pgbench": {"scripts": [{"text": text, "name": name}], "scale": 1}}
