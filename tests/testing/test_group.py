"""What `make test` says at its end: all that failed, in whatever way it failed, and nothing of it lost."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from tools.testing import __main__ as program
from tools.testing import group, lists, outcome
from tools.testing.group import ENDING, Group, Run

from ..host.needs import expect

FAILING = """
import pytest

@pytest.fixture
def left():
    yield
    pytest.fail("the test left on the machine (now removed):\\n  process 7", pytrace=False)

def test_good(): pass

def test_bad():
    print("what the test printed")
    assert [1] == [2], "one is not two"

def test_that_leaks(left): pass

@pytest.mark.skip(reason="needs something")
def test_skipped(): pass
"""
WAITS = """
import os, signal
ending = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
signal.pthread_sigmask(signal.SIG_BLOCK, ending)
os.kill(os.getppid(), {number:d})
print("ended by", signal.sigwait(ending).name)
"""
SIGNALLED = """
import os, signal
from pathlib import Path
import pytest

WRITTEN = Path({written!r})

@pytest.fixture
def server():
    WRITTEN.write_text("")
    yield
    print("taking down")
    WRITTEN.write_text(WRITTEN.read_text() + "taken down")

def test_signalled(server):
    {act}
    WRITTEN.write_text("went on, ")
"""
PANIC = "thread 'stage::tests::it_holds' (4711) panicked at crates/volume/src/stage/mod.rs:9:5: assertion failed: held"
CARGO = """
running 2 tests
.F
failures:

---- stage::tests::it_holds stdout ----

thread 'stage::tests::it_holds' (4711) panicked at crates/volume/src/stage/mod.rs:9:5:
assertion failed: held

failures:
    stage::tests::it_holds

test result: FAILED. 1 passed; 1 failed; 3 ignored; 0 measured; 0 filtered out; finished in 0.01s

running 1 test
.
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s

cargo left on the machine (now removed): process 4712 (sleep): sleep 600
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """A run whose signals are this process's own again afterwards."""
    before = {number: signal.getsignal(number) for number in ENDING}
    monkeypatch.setattr(group, "leave_terminal", lambda: None)  # that of these tests is there
    yield Run()
    for number, handler in before.items():
        signal.signal(number, handler)


def python(
    text: str, judge: Callable[[str], outcome.Outcome] = outcome.of_cargo, name: str = "one"
) -> Callable[[], Group]:
    """What starts a program of so many lines as a group."""
    return lambda: Group(name, [sys.executable, "-c", textwrap.dedent(text)], os.environ, judge)


def test_what_failed_comes_last_with_its_reason(asked: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "test_trial.py"
    file.write_text(FAILING)
    options = [str(file), f"--rootdir={tmp_path}", "-p", "no:cacheprovider", "--confcutdir", str(tmp_path)]
    asked.parts(lambda: program.pytest("trial", options, tmp_path, dict(os.environ)))
    program.say(asked, 1.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines[-4].startswith("FAILED test_trial.py::test_bad: AssertionError: one is not two")
    assert lines[-3].startswith("ERROR test_trial.py::test_that_leaks: failed on teardown")
    assert "process 7" in lines[-3]
    assert lines[-2:] == ["1 passed, 2 failed, 1 skipped", "make test: failed after 1 s"]
    at = lines.index("=== test_trial.py::test_bad")
    assert "what the test printed" in lines[at:]
    assert "E       AssertionError: one is not two" in lines[at:]
    assert any(line.startswith("trial | ") and "test_trial.py" in line for line in lines[:at]), "as it came, too"


def test_failures_of_rust_and_what_it_left_are_found() -> None:
    cargo = outcome.of_cargo(CARGO)
    assert (cargo.passed, cargo.skipped) == (2, 3)
    assert [str(failure) for failure in cargo.failures] == [
        f"FAILED stage::tests::it_holds: {PANIC}",
        "FAILED cargo test: cargo left on the machine (now removed): process 4712 (sleep): sleep 600",
    ]
    assert "assertion failed: held" in "\n".join(outcome.said(cargo))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("print('it does not compile'); raise SystemExit(101)", "ended with 101, and named no test that failed"),
        ("import os; os.kill(os.getpid(), 9)", "killed by signal 9, and named no test that failed"),
        ("print('nothing to do')", "ended with 0, and ran no test"),
    ],
)
def test_a_group_that_names_no_failure_is_one(text: str, reason: str, asked: Run) -> None:
    asked.parts(python(text), python("print('test result: ok. 1 passed; 0 failed; 0 ignored;')", name="other"))
    (failure,) = asked.found.failures
    assert str(failure) == f"ERROR one: {reason}"
    assert asked.found.passed == 1
    assert "kill" in text or failure.output in ("it does not compile\n", "nothing to do\n")


@pytest.mark.parametrize("number", ENDING)
def test_an_interrupted_run_interrupts_what_runs_and_begins_nothing_else(
    asked: Run, capsys: pytest.CaptureFixture[str], number: signal.Signals
) -> None:
    asked.parts(python(WAITS.format(number=number)), lambda: pytest.fail("it began"))
    program.say(asked, 1.0)
    out = capsys.readouterr().out
    assert "one | ended by SIGINT" in out
    assert out.endswith("make test: interrupted after 1 s\n")


@pytest.mark.parametrize("number", ENDING)
def test_an_interrupted_bench_takes_down_what_it_made(
    asked: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    number: signal.Signals,
) -> None:
    """`asked` gives this process its signals back; the bench listens itself."""
    program_file = tmp_path / "python"
    program_file.write_text(f"#!{sys.executable}\n{WAITS.format(number=number)}")
    program_file.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program_file))
    assert program.bench(None) == 130
    assert capfd.readouterr().out == f"ended by {number.name}\n"
    assert not asked.interrupted


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_the_tests_as_ctrl_c_does(tmp_path: Path, number: signal.Signals) -> None:
    """Before, a hang-up left PostgreSQL and a mounted volume behind."""
    with _trial(tmp_path, f"os.kill(os.getpid(), {number:d})") as trial:
        assert trial.wait() == pytest.ExitCode.INTERRUPTED
    assert (tmp_path / "written").read_text() == "taken down"


def test_a_hang_up_under_nohup_does_not_end_them(tmp_path: Path) -> None:
    with _trial(tmp_path, "os.kill(os.getpid(), signal.SIGHUP)", before=["nohup"]) as trial:
        assert trial.wait() == pytest.ExitCode.OK
    assert (tmp_path / "written").read_text() == "went on, taken down"


@pytest.mark.parametrize("option", ["--capture=fd", "--capture=no"])
def test_a_terminal_that_is_closed_ends_them_and_what_they_print_ends_nothing(tmp_path: Path, option: str) -> None:
    terminal, theirs = pty.openpty()
    with _trial(tmp_path, "signal.pause()", terminal=theirs, options=[option]) as trial:
        os.close(theirs)
        expect((tmp_path / "written").exists, "the test runs")
        os.close(terminal)
        assert trial.wait() == pytest.ExitCode.INTERRUPTED
    assert (tmp_path / "written").read_text() == "taken down"
    assert list(tmp_path.glob("pgdt-*")) == [], "the run's own folders are removed last"


def test_rusts_tests_that_are_interrupted_leave_no_folder(tmp_path: Path) -> None:
    command = ["sh", "-c", "kill -INT $PPID; touch $TMPDIR/made; kill -INT $$"]
    process = subprocess.run(
        [sys.executable, "-m", "tests.leaks", *command],
        cwd=lists.ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert process.returncode
    assert list(tmp_path.iterdir()) == []


def _trial(
    folder: Path,
    act: str,
    *,
    before: Sequence[str] = (),
    options: Sequence[str] = (),
    terminal: int = subprocess.DEVNULL,
) -> subprocess.Popen[bytes]:
    """A run of one test that does ``act``; it and its fixture write a file. ``terminal`` is the one of its session."""
    file = folder / "test_trial.py"
    file.write_text(SIGNALLED.format(act=act, written=str(folder / "written")))
    plugins = ("-p", "tests.conftest", "-p", "no:cacheprovider")
    return subprocess.Popen(
        [*before, sys.executable, "-m", "pytest", *plugins, f"--rootdir={folder}", *options, str(file)],
        cwd=lists.ROOT,
        env={**os.environ, "TMPDIR": str(folder)},
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=partial(fcntl.ioctl, 0, termios.TIOCSCTTY, 0) if terminal >= 0 else None,
    )


def test_so_many_run_at_a_time_and_no_more(asked: Run, tmp_path: Path) -> None:
    """Two wait for each other's file; the third begins when one of them has ended, so both files are there."""
    pair = f"""
        import os
        from pathlib import Path
        mine, other = (Path({str(tmp_path)!r}) / name for name in ORDER)
        mine.touch()
        while not other.exists():
            os.sched_yield()
        print("test result: ok. 1 passed; 0 failed; 0 ignored;")
    """
    third = f"""
        from pathlib import Path
        assert all((Path({str(tmp_path)!r}) / name).exists() for name in ("one", "two"))
        print("test result: ok. 1 passed; 0 failed; 0 ignored;")
    """
    asked.parts(
        python(pair.replace("ORDER", "('one', 'two')"), name="one"),
        python(pair.replace("ORDER", "('two', 'one')"), name="two"),
        python(third, name="third"),
        at_a_time=2,
    )
    assert asked.found.failures == ()
    assert asked.found.passed == 3


def test_every_file_of_tests_is_in_one_part() -> None:
    named = [path for item in lists.beside() for path in item.paths] + [*lists.MEASURING]
    assert all(item.paths for item in lists.beside())
    named += [f"tests/{name}" for name in lists.BENCHES]
    assert all((lists.ROOT / path).exists() for path in named)
    for path in (lists.ROOT / "tests").rglob("test_*.py"):
        file = path.relative_to(lists.ROOT)
        assert sum(name in (file.as_posix(), *(parent.as_posix() for parent in file.parents)) for name in named) == 1, (
            file
        )
