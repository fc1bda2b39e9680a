"""Ten million requests over every type, arrays, instances and changes at work: decided again, each is the same."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.bench

ROOT = Path(__file__).resolve().parents[2]
REQUESTS = 10_000_000
COMMAND = ("cargo", "test", "--release", "--locked", "--quiet", "-p", "pgdyno-catalog", "--test", "all")
FIGURE = re.compile(r"(\w+)=(\S+)")
DEADLINE_S = 1800.0
"""With what has to be compiled first."""


def test_ten_million_requests_are_decided_again_to_the_nanosecond() -> None:
    """The test in crates/catalog/tests/replay.rs compares each completion; here its figures are shown and added."""
    subprocess.run([*COMMAND, "--no-run"], cwd=ROOT, check=True, timeout=DEADLINE_S)
    begin = time.monotonic()
    done = subprocess.run(
        [*COMMAND, "--", "--ignored", "--nocapture", "ten_million_requests"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    taken_s = time.monotonic() - begin
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    runs = [dict(FIGURE.findall(line)) for line in done.stdout.splitlines() if "replayed seed=" in line]
    print("", *(" ".join(f"{name} {value}" for name, value in run.items()) for run in runs), sep="\n")
    requests = sum(int(run["requests"]) for run in runs)
    print(f"{requests:,} requests, all identical, in {taken_s:.0f} s")
    assert requests == REQUESTS
    assert len({run["instance"] for run in runs}) >= 4
    for limit in ("exceeded_iops_s", "exceeded_throughput_s"):
        assert any(int(run[limit]) > 0 for run in runs), f"no instance was what its volumes waited for: {limit}"
    assert len({run["digest"] for run in runs}) == len(runs), "each run is one of its own"
