"""``pgdyno`` as the documents' test runs it: the same command on less data, for seconds instead of minutes.

What is made smaller is appended, so it wins over what the document says, and the whole line is printed.
"""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
from pathlib import Path

from pgdyno.cli.main import run

SCALE = "2"
_MEASURE = {"workload.clients": "4", "workload.warmup": "1s", "workload.duration": "2s"}

SMALLER: dict[str, list[str]] = {
    "compare": [f"--scale={SCALE}", "--clients=4", "--warmup=1s", "--duration=2s", "--replicates=1", "--keep-invalid"],
    "drive": [f"--scale={SCALE}", "--clients=4", "--warmup=0s", "--duration=1s", "--keep-invalid"],
    "run": [*(f"--set={key}={value}" for key, value in _MEASURE.items()), "--replicates=1", "--keep-invalid"],
}
"""Command -> what its measurements come down to. A measurement of two seconds is hardly valid: hence the last one."""
MANY_ARMS = 2
AS_IT_WAS = ["--keep-invalid"]
"""A resumed experiment is as small as it was begun."""


def smaller(words: list[str]) -> list[str]:
    """The arguments of a command, with what makes it small."""
    if not words or {"--help", "-h"} & set(words):
        return words
    if "--resume" in words:
        return [*words, *AS_IT_WAS]
    if words[:2] == ["volume", "fit"] and "--quick" not in words:
        return [*words, "--quick"]
    if words[:2] == ["metrics", "serve"] and "--once" not in words:
        return [*words, "--once"]  # it serves until Ctrl-C
    of_file = [*_sizes(words), *_first_and_last(words)] if words[0] == "run" else []
    return [*words, *SMALLER.get(words[0], []), *of_file]


def _sizes(words: list[str]) -> list[str]:
    """Smaller tables for an experiment file, by the keys of its kind of workload."""
    file = next((Path(word) for word in words if word.endswith(".toml")), None)
    workload = tomllib.loads(file.read_text()).get("workload", {}) if file is not None else {}
    sizes = {"sysbench": {"tables": "2", "rows": "2000"}, "idle": {}}.get(workload.get("kind"), {"scale": SCALE})
    if "data_to_memory" in workload:
        sizes = {"data_to_memory": "0.1"}
    return [f"--set=workload.{key}={value}" for key, value in sizes.items()]


def _first_and_last(words: list[str]) -> list[str]:
    """Of an experiment with many arms the first and the last, which differ in every factor."""
    from pgdyno.experiment import read_experiment

    file = next((Path(word) for word in words if word.endswith(".toml")), None)
    if file is None or {"--only", "--dry-run"} & set(words):
        return []
    arms = len(read_experiment(file).arms)
    return ["--only=1", f"--only={arms}"] if arms > MANY_ARMS else []


def main() -> int:
    """Run one command."""
    words = smaller(sys.argv[1:])
    if "_PGDYNO_COMPLETE" not in os.environ:
        print(f"docs: pgdyno {shlex.join(words)}", file=sys.stderr)
    return run(words)


if __name__ == "__main__":
    sys.exit(main())
