"""Both languages' tests, with a state of their own that is removed at the end.

``python -m tools.testing``, or ``--bench [FOLDER]`` for the measurements, of one folder of tests alone if it is named.
``--twice [SEED]`` runs Python's tests twice at once, each time in a random order of their parts: what passes so does not
depend on what runs beside it.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tools.testing import lists, outcome
from tools.testing.group import Group, Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_NOT_OURS = (
    "PGDYNO_ENGINE", "PYTHONPATH", "PGHOST", "PGPORT", "PGUSER", "PGDATABASE", "PGPASSWORD", "PGSERVICE", "PGOPTIONS",
)  # fmt: skip
"""Variables of the user that would make the tests ask another server, or another engine."""
CARGO = ("cargo", "test", "--profile", "tests", "--locked", "--workspace", "--no-fail-fast", "--quiet")
AT_A_TIME = 3 + max(2, os.cpu_count() or 1)
"""Parts that run at once: experiments wait most of the time, some of them for each other."""
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
        clusters = images / "clusters"
        clusters.mkdir()
        environment |= {
            "PGDYNO_STATE_DIR": str(scratch / "state"),
            "PGDYNO_RESULTS": str(scratch / "results"),
            "PGDYNO_IMAGE_DIR": str(images),
            "PGDYNO_TEST_CLUSTERS": str(clusters),
            "LC_ALL": "C.UTF-8",
        }
        yield scratch, environment


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
        environment[lists.LIMITS] = "1"
        run = Run()
        start = partial(partial, pytest, scratch=scratch, environment=environment)
        parts = lists.beside()
        with_rust = [part for part in parts if part.name in lists.BESIDE_RUST]
        others = [part for part in parts if part not in with_rust]
        run.parts(partial(rust, environment), *(start(item.name, item.paths) for item in with_rust), at_a_time=2)
        run.parts(start("measuring", lists.MEASURING))  # the machine is theirs
        run.parts(
            *(start(item.name, item.paths) for item in others),
            at_a_time=AT_A_TIME,
        )
        say(run, time.monotonic() - began)
    return 130 if run.interrupted else 1 if run.found.failures else 0


def twice(seed: int) -> int:
    """Run Python's tests twice at once, their parts in an order that ``seed`` draws; those that measure are left out."""
    began = time.monotonic()
    print(f"seed {seed}", flush=True)
    with own_state() as first, own_state() as second:
        starts = []
        for number, (scratch, environment) in enumerate((first, second), 1):
            environment[lists.LIMITS] = "1"
            for part in lists.beside():
                starts.append(partial(pytest, f"{part.name}-{number}", part.paths, scratch, environment))
        random.Random(seed).shuffle(starts)
        run = Run()
        run.parts(*starts, at_a_time=AT_A_TIME)
        say(run, time.monotonic() - began)
    return 130 if run.interrupted else 1 if run.found.failures else 0


def say(run: Run, seconds: float) -> None:
    """Print what took long, and then what failed, so that the end of a log says it."""
    result = run.found
    slowest = sorted(result.seconds.items(), key=lambda item: -item[1])[:SLOWEST]
    print("\nslowest:", ", ".join(f"{file} {taken:.0f} s" for file, taken in slowest))
    for group, _ in run.done:
        print(f"{group.name}: {group.seconds:.0f} s, and {group.cpu_seconds:.0f} s of CPU")
    print("\n".join(outcome.said(result)))
    how = "interrupted" if run.interrupted else "failed" if result.failures else "passed"
    print(f"make test: {how} after {seconds:.0f} s", flush=True)


def bench(folder: str | None) -> int:
    """Run the measurements, of one folder of tests if it is named. They have the machine alone, so they may set its dirty limits."""
    with own_state() as (scratch, environment):
        report = scratch / "bench.xml"
        where = [f"tests/{folder.replace('-', '_')}"] if folder else []
        command = [sys.executable, "-m", "pytest", "-m", "bench", "-s", f"--junitxml={report}", *where]
        run = Run()
        run.parts(partial(Group, "bench", command, environment, lambda _: outcome.of_pytest(report), piped=False))
    return 130 if run.interrupted else 1 if run.found.failures else 0


def main(arguments: Sequence[str]) -> int:
    """Run what is asked for."""
    if arguments[:1] == ["--bench"]:
        return bench(next(iter(arguments[1:]), None))
    if arguments[:1] == ["--twice"]:
        return twice(int(next(iter(arguments[1:]), time.time_ns() % 1_000_000)))
    return test()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
