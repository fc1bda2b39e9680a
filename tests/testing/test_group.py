"""What `make test` says at its end: all that failed, in whatever way it failed, and nothing of it lost."""

from __future__ import annotations

import os
import signal
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.testing import __main__ as program
from tools.testing import lists, outcome
from tools.testing.group import Group, Run

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
def asked() -> Iterator[Run]:
    """A run whose signals are this process's own again afterwards."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
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
    found = outcome.of_cargo(CARGO)
    assert (found.passed, found.skipped) == (2, 3)
    assert [str(failure) for failure in found.failures] == [
        f"FAILED stage::tests::it_holds: {PANIC}",
        "FAILED cargo test: cargo left on the machine (now removed): process 4712 (sleep): sleep 600",
    ]
    assert "assertion failed: held" in "\n".join(outcome.said(found))


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


def test_an_interrupted_run_interrupts_what_runs_and_begins_nothing_else(
    asked: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    waits = """
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        os.kill(os.getppid(), signal.SIGTERM)
        signal.sigwait([signal.SIGINT])
        print("taken down")
    """
    asked.parts(python(waits), lambda: pytest.fail("it began"))
    program.say(asked, 1.0)
    out = capsys.readouterr().out
    assert "one | taken down" in out
    assert out.endswith("make test: interrupted after 1 s\n")


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


def test_some_begin_when_the_first_has_ended_and_before_those_that_wait(asked: Run) -> None:
    counted = 'print("test result: ok. 1 passed; 0 failed; 0 ignored;")'
    names = ("first", "waits", "also waits")
    asked.parts(*(python(counted, name=name) for name in names), after_the_first=[python(counted, name="held")])
    assert [group.name for group, _ in asked.done] == ["first", "held", "waits", "also waits"]
    assert asked.found.passed == 4


def test_every_file_of_tests_is_in_one_part() -> None:
    named = [path for one in lists.beside() for path in one.paths] + [*lists.MEASURING, *lists.KILLING]
    assert all(one.paths for one in lists.beside())
    named += [f"tests/{name}" for name in lists.BENCHES]
    assert all((lists.ROOT / path).exists() for path in named)
    for path in (lists.ROOT / "tests").rglob("test_*.py"):
        file = path.relative_to(lists.ROOT)
        assert sum(name in (file.as_posix(), *(parent.as_posix() for parent in file.parents)) for name in named) == 1, (
            file
        )
