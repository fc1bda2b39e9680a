"""Both languages' tests, with a state of their own that is removed at the end.

``python -m tools.testing``, or ``--bench [FOLDER]`` for the measurements, of one folder of tests alone if it is named.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tools.testing import outcome
from tools.testing.group import Group, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXPERIMENTS = (
    "tests/compare", "tests/docs/test_execution.py", "tests/experiment", "tests/fill", "tests/host", "tests/metrics",
    "tests/rude",
)  # fmt: skip
"""Volumes and whole experiments whose figures nobody judges: they wait most of the time. One at a time may set the kernel's
dirty limits, so they are one group."""
ASKING = (
    "tests/cli", "tests/connection", "tests/drive", "tests/generate", "tests/load", "tests/loader", "tests/postgres",
    "tests/workload",
)  # fmt: skip
"""What asks servers and commands, and judges what they did and not when: it passes however busy the machine is."""
COMPUTING = (
    "tests/analysis", "tests/docs/test_commands.py", "tests/docs/test_reference.py", "tests/equivalence", "tests/lint",
    "tests/report", "tests/size", "tests/store", "tests/testing",
)  # fmt: skip
"""What computes, and asks nothing of the machine but its CPU."""
_NOT_OURS = (
    "PGDYNO_ENGINE", "PYTHONPATH", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGSERVICE", "PGOPTIONS",
)  # fmt: skip
"""Variables of the user that would make the tests ask another server, or another engine."""
CARGO = ("cargo", "test", "--release", "--locked", "--workspace", "--no-fail-fast", "--quiet")
SLOWEST = 12
"""So many files of tests are named with their seconds."""


@contextlib.contextmanager
def own_state() -> Iterator[tuple[Path, dict[str, str]]]:
    """A scratch folder that is removed at the end, and the environment of the tests."""
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(_folder(None)))
        shared = Path("/dev/shm")
        images = stack.enter_context(_folder(shared if os.access(shared, os.W_OK) else scratch))
        environment = {name: value for name, value in os.environ.items() if name not in _NOT_OURS}
        yield (
            scratch,
            environment
            | {
                "PGDYNO_STATE_DIR": str(scratch / "state"),
                "PGDYNO_RESULTS": str(scratch / "results"),
                "PGDYNO_IMAGE_DIR": str(images),
                "LC_ALL": "C.UTF-8",
            },
        )


@contextlib.contextmanager
def _folder(parent: Path | None) -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="pgdyno-test.", dir=parent))
    folder.chmod(0o755)  # an unprivileged PostgreSQL must be able to pass through
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def pytest(name: str, arguments: Sequence[str], scratch: Path, environment: dict[str, str]) -> Group:
    """Start a group of Python's tests."""
    report = scratch / f"{name}.xml"
    settings = ("junit_family=xunit1", "junit_logging=all", "junit_log_passing_tests=false")
    options = ["-m", "not bench", f"--junitxml={report}", *(f"--override-ini={setting}" for setting in settings)]
    command = [sys.executable, "-m", "pytest", *options, *arguments]
    return Group(name, command, environment, lambda _: outcome.of_pytest(report))


def rust(environment: dict[str, str]) -> Group:
    """Start Rust's tests."""
    return Group("rust", [sys.executable, "-m", "tests.leaks", *CARGO], environment, outcome.of_cargo)


def test() -> int:
    """Run everything that this machine can run; 1 when something failed, 130 when it was interrupted."""
    began = time.monotonic()
    with own_state() as (scratch, environment):
        asked = Run()
        start = partial(partial, pytest, scratch=scratch, environment=environment)
        asked.side_by_side(partial(rust, environment))
        # What is in no list measures, so it has the machine for itself.
        asked.side_by_side(start("measuring", [f"--ignore={path}" for path in (*EXPERIMENTS, *ASKING, *COMPUTING)]))
        asked.side_by_side(start("experiments", EXPERIMENTS), start("asking", ASKING), start("computing", COMPUTING))
        say(asked, time.monotonic() - began)
    return 130 if asked.interrupted else 1 if asked.found.failures else 0


def say(asked: Run, seconds: float) -> None:
    """Print what took long, and then what failed, so that the end of a log says it."""
    found = asked.found
    print("\nslowest:", ", ".join(f"{file} {taken:.0f} s" for file, taken in found.seconds.most_common(SLOWEST)))
    for group, _ in asked.done:
        print(f"{group.name}: {group.seconds:.0f} s, and {group.cpu_seconds:.0f} s of CPU")
    print("\n".join(outcome.said(found)))
    how = "interrupted" if asked.interrupted else "failed" if found.failures else "passed"
    print(f"make test: {how} after {seconds:.0f} s", flush=True)


def bench(folder: str | None) -> int:
    """Run the measurements, of one folder of tests if it is named."""
    with own_state() as (_, environment):
        where = [f"tests/{folder}"] if folder else []
        process = subprocess.Popen([sys.executable, "-m", "pytest", "-m", "bench", "-s", *where], env=environment)
        signal.signal(signal.SIGINT, lambda *_: None)  # the terminal interrupts pytest as well, which ends in its time
        signal.signal(signal.SIGTERM, lambda *_: process.send_signal(signal.SIGINT))
        return process.wait()


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for."""
    if arguments[:1] == ["--bench"]:
        return bench(next(iter(arguments[1:]), None))
    return test()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
