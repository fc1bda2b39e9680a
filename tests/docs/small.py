"""``pgdyno`` as the documents' test runs it: the same command on less data, for seconds instead of minutes.

What is made smaller is appended, so it wins over what the document says, and the whole line is printed. Unless :data:`EMULATED`
is set, experiments run on the fake world, which takes no time, loads are planned only, and existing servers are measured; pictures are
left out, but for those that `pgdyno report --format` writes.
"""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
from pathlib import Path

from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.report import render
from tests.docs import datasets
from tests.support import pictures

EMULATED = "PGDYNO_DOCS_EMULATED"
"""Environment variable: set, experiments measure PostgreSQL on emulated volumes."""
SCALE = "2"
_MEASURE = {"workload.clients": "4", "workload.warmup": "1s", "workload.duration": "2s"}

_COMPARED = [f"--scale={SCALE}", "--clients=4", "--warmup=1s", "--duration=2s", "--replicates=1", "--keep-invalid"]

SMALLER: dict[str, list[str]] = {
    "demo": _COMPARED,
    "compare": _COMPARED,
    "drive": [f"--scale={SCALE}", "--clients=4", "--warmup=0s", "--duration=1s", "--keep-invalid"],
    "run": [*(f"--set={key}={value}" for key, value in _MEASURE.items()), "--replicates=1", "--keep-invalid"],
}
"""Command -> what its measurements come down to. A measurement of two seconds is hardly valid: hence the last one."""
_WITHOUT_CLIENTS = ("load", "tpch")
"""Kinds of workload that end with their work."""
_SIZES: dict[str, dict[str, str]] = {
    "sysbench": {"tables": "2", "rows": "2000"},
    "idle": {},
    "load": {"bulk.scale": "0.0005"},
    "tpcc": {"warehouses": "1"},
    "tpch": {"scale_factor": "0.01"},
}
"""Kind of workload -> keys that make its tables small."""
MANY_ARMS = 2
SLOWED = "2"
"""Times, where time is slowed: a command of 8 would wait four times as long for the same."""
AS_IT_WAS = ["--keep-invalid", "--only=2"]
"""A resumed experiment is as small as it was begun, with its first arm; one more shows that it goes on."""


def smaller(words: list[str]) -> list[str]:
    """The arguments of a command, with what makes it small."""
    if not words or {"--help", "-h"} & set(words):
        return words
    if "--resume" in words:
        return [*words, *AS_IT_WAS]
    if words[:2] == ["volume", "fit"] and "--quick" not in words:
        return [*words, "--quick"]
    if words[0] == "reproduce":
        return _recorded(words)
    if words[:2] == ["metrics", "serve"] and "--once" not in words:
        return [*words, "--once"]  # it serves until Ctrl-C
    if words[:2] == ["volume", "policy"] and "--volume" in words:
        return [*words, "--for=1s"]  # it runs until Ctrl-C
    if words[:2] == ["capture", "record"]:
        return [*words, "--for=3s"]  # it records until Ctrl-C
    if words[:2] == ["drive", "idle"]:
        # It has no tables, and refuses what says how large they are.
        return [*words, *(setting for setting in SMALLER["drive"] if not setting.startswith("--scale="))]
    if words[:2] == ["drive", "tpch"]:
        return [*words, "--scale-factor=0.01", "--clients=1", "--duration=2min", "--keep-invalid"]
    if words[:2] == ["drive", "tpcc"]:
        sizes = [setting for setting in SMALLER["drive"] if not setting.startswith("--scale=")]
        return [*words, "--warehouses=1", *sizes, *_paced(words)]
    if words[0] == "diagnose":
        once = ["--every=10s", "--until=8s"] if "--every" in words else []
        watched = not (words[1].startswith("--") or Path(words[1]).is_dir())  # else files or kept watches are judged
        return [*words, *(["--for=5s", *once] if watched else [])]
    more: list[str] = []
    if words[0] == "run":
        more = [*_sizes(words), *_slowed(words), *_first_and_last(words)]
    elif words[0] == "compare" and "--dilation" in words:
        more = [f"--dilation={SLOWED}"]
    more += _made_up(words)
    if words[0] == "run" and _kind(words) in _WITHOUT_CLIENTS:
        return [*words, "--replicates=1", "--keep-invalid", *more]  # it ends with its work
    chosen = SMALLER.get(words[0], []) + (_paced(words) if words[0] == "drive" else [])
    if "--restore" in words:
        chosen = [setting for setting in chosen if not setting.startswith("--scale=")]
    return [*words, *_free(words, chosen), *more]


def _paced(words: list[str]) -> list[str]:
    """Clients of a closed loop pause: without that a second of theirs is two seconds of CPU, which other tests need."""
    return [] if {"--rate", "-R"} & set(words) else ["--think-ms=5"]


def _recorded(words: list[str]) -> list[str]:
    """``reproduce`` of recorded results: its experiments take an hour, and other documents run their files. No budget is allowed then."""
    if {"--list", "--from"} & set(words):
        return words
    left = [word for before, word in zip(["", *words], words, strict=False) if "--budget" not in (before, word)]
    return [*left, "--from=results"]


def _made_up(words: list[str]) -> list[str]:
    """What keeps an experiment from measuring: made-up figures, and a dry run of what the fake world refuses."""
    if os.environ.get(EMULATED) or words[0] not in ("compare", "demo", "run") or _is_real(words):
        return []
    if words[0] == "run" and _kind(words) in _WITHOUT_CLIENTS:
        return [] if "--dry-run" in words else ["--dry-run"]
    return ["--set=world.kind=fake"]


def _is_real(words: list[str]) -> bool:
    """Whether an experiment is for an existing server."""
    file = _file(words) if words[0] == "run" else None
    return file is not None and tomllib.loads(file.read_text()).get("world", {}).get("kind") == "real"


def _free(words: list[str], settings: list[str]) -> list[str]:
    """Those that set nothing that is a factor of the experiment file, and no duration that ends before its events: both are refused."""
    file = _file(words) if words[0] == "run" else None
    document = tomllib.loads(file.read_text()) if file is not None else {}
    kept = [*document.get("factors", {}), *(["workload.duration"] if "event" in document else [])]
    return [setting for setting in settings if not setting.startswith(tuple(f"--set={name}=" for name in kept))]


def _file(words: list[str]) -> Path | None:
    """The experiment file among the arguments."""
    return next((Path(word) for word in words if word.endswith(".toml")), None)


def _kind(words: list[str]) -> str:
    """The kind of workload of an experiment file."""
    file = _file(words)
    document = tomllib.loads(file.read_text()) if file is not None else {}
    return str(document.get("workload", {}).get("kind", "pgbench"))


def _slowed(words: list[str]) -> list[str]:
    """Less dilation for a file that has one."""
    file = _file(words)
    world = tomllib.loads(file.read_text()).get("world", {}) if file is not None else {}
    return [f"--set=world.dilation={SLOWED}"] if world.get("dilation", 1) > int(SLOWED) else []


def _sizes(words: list[str]) -> list[str]:
    """Smaller tables for an experiment file, by the keys of its kind of workload."""
    file = _file(words)
    document = tomllib.loads(file.read_text()) if file is not None else {}
    workload = document.get("workload", {})
    sizes = _SIZES.get(workload.get("kind"), {"scale": SCALE})
    if "database" in workload:
        sizes = {}  # it is as large as its source
    if "data_to_memory" in workload:
        sizes = {"data_to_memory": "0.1"}
    if "workload.transactions" in document.get("factors", {}):
        sizes = sizes | {"warmup": "0s"}
    return [f"--set=workload.{key}={value}" for key, value in sizes.items()]


def _first_and_last(words: list[str]) -> list[str]:
    """Of an experiment with many arms the first and the last, which differ in every factor."""
    from pgdyno.experiment import read_experiment

    file = _file(words)
    if file is None or {"--only", "--dry-run"} & set(words):
        return []
    arms = len(read_experiment(file).arms)
    return ["--only=1", f"--only={arms}"] if arms > MANY_ARMS else []


def main() -> int:
    """Run one command."""
    words = smaller(sys.argv[1:])
    if "_PGDYNO_COMPLETE" not in os.environ:
        print(f"docs: pgdyno {shlex.join(words)}", file=sys.stderr)
    if words and words[0] in ("compare", "demo", "run"):
        datasets.share()
    if words[:2] != ["volume", "fit"] and not os.environ.get(EMULATED):
        # No document looks at when a volume answers, but the one that compares a volume with a disk.
        assert volume.attach.__kwdefaults__ is not None
        volume.attach.__kwdefaults__["calibrate"] = False
    if not (os.environ.get(EMULATED) or "--format" in words):
        sys.modules |= pictures.NONE
        render.WIDTHS_PX = pictures.ONE_WIDTH
    return run(words)


if __name__ == "__main__":
    sys.exit(main())
