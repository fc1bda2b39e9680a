"""The command line: what it says, where it says it, and how it ends."""

from __future__ import annotations

import importlib.metadata
import os
import signal
import subprocess
import sys
import tomllib
from email.message import Message
from pathlib import Path

import click
import psycopg
import pytest

from pgdyno import __version__
from pgdyno.base import errors, installation
from pgdyno.base.errors import HostError, InputError, RunInvalid
from pgdyno.cli import main as cli_main

HEAVY = ("altair", "duckdb", "jinja2", "numpy", "psycopg", "pyarrow", "pydantic", "rich", "scipy", "vl_convert")


def pgdyno(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "pgdyno", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | environment,
    )


@click.command()
@click.argument("kind")
@click.pass_context
def failing(ctx: click.Context, kind: str) -> None:
    """Ends in the way it is told."""
    if kind == "code":
        ctx.exit(3)
    raise {
        "host": HostError("there is no fuse", remedy="load the module"),
        "input": InputError("17 is too much", remedy="ask for 16"),
        "coded": InputError("17 is too much", remedy="ask for 16", code="load.rows.many"),
        "invalid": RunInvalid("the driver was the bottleneck"),
        "interrupt": KeyboardInterrupt(),
        "pipe": BrokenPipeError(),
        "session": psycopg.errors.ConnectionTimeout("connection timeout expired"),
        "bug": ZeroDivisionError("by zero"),
    }[kind]


@pytest.fixture
def with_failing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli_main.LazyGroup, "get_command", lambda self, ctx, name: failing)


@pytest.mark.usefixtures("with_failing")
@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("host", 3, "error: there is no fuse\n  remedy: load the module\n"),
        ("input", 2, "error: 17 is too much\n  remedy: ask for 16\n"),
        ("coded", 2, "error[load.rows.many]: 17 is too much\n  remedy: ask for 16\n"),
        ("invalid", 4, "error: the driver was the bottleneck\n"),
        ("interrupt", 130, "\ninterrupted\n"),
        ("code", 3, ""),
    ],
)
def test_an_error_is_one_sentence_its_remedy_and_its_code(
    kind: str, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_main.run(["doctor", kind]) == code
    assert capsys.readouterr() == ("", said)


@pytest.mark.usefixtures("with_failing")
def test_a_server_that_gives_no_session_is_not_a_bug(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_main.run(["doctor", "session"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("error[server.no_session]: ")
    assert "connection timeout expired\n  remedy: look at" in err
    assert "Traceback" not in err


@pytest.mark.usefixtures("with_failing")
def test_a_bug_keeps_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli_main.run(["doctor", "bug"]) == 1
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert f"error: this is a bug in pgdyno {__version__}: ZeroDivisionError: by zero" in err
    assert "remedy: report it " in err


@pytest.mark.parametrize(
    ("addresses", "where"),
    [
        ([], "where you got pgdyno"),
        (
            ["Changelog, https://h.example/o/x/changes", "Repository, https://h.example/o/x"],
            "at https://h.example/o/x/issues",
        ),
    ],
)
def test_a_bug_is_reported_where_the_package_says(
    monkeypatch: pytest.MonkeyPatch, addresses: list[str], where: str
) -> None:
    made = Message()
    for address in addresses:
        made["Project-URL"] = address
    monkeypatch.setattr(importlib.metadata, "metadata", lambda _: made)
    assert installation.how_to_report() == f"report it {where}, with the lines above"


def test_an_unknown_command_is_refused_with_the_nearest_name() -> None:
    done = pgdyno("compar", "gp3")
    assert (done.returncode, done.stdout) == (2, "")
    assert "There is no command `compar`. Did you mean `pgdyno compare`?" in done.stderr


@pytest.mark.parametrize("word", cli_main.ELSEWHERE)
def test_a_word_that_is_no_command_leads_to_the_command_that_does_it(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli_main.run([word]) == 2
    command = cli_main.ELSEWHERE[word]
    assert f"Did you mean `pgdyno {command}`?" in capsys.readouterr().err
    assert cli_main.run([*command.split(), "--help"]) == 0


def test_a_wrong_flag_names_the_help_to_read() -> None:
    done = pgdyno("show", "completion", "tcsh")
    assert done.returncode == 2
    assert "remedy: read `pgdyno show completion --help`" in done.stderr


def test_the_version_is_that_of_the_engine_and_of_the_package(repository: Path) -> None:
    manifest = tomllib.loads((repository / "Cargo.toml").read_text())
    assert manifest["workspace"]["package"]["version"] == __version__
    assert pgdyno("--version").stdout == f"pgdyno {__version__}\n"


def test_help_lists_every_command_and_every_exit_code() -> None:
    done = pgdyno("--help")
    assert done.returncode == 0
    for name in cli_main.COMMANDS:
        assert f"\n  {name} " in done.stdout
    for code, meaning in errors.EXIT_CODES.items():
        assert f"  {code} " in done.stdout
        assert meaning in done.stdout


def test_each_file_of_a_command_is_listed_and_the_other_way_round() -> None:
    folder = Path(cli_main.__file__).parent
    with_command = {file.stem for file in folder.glob("[a-z]*.py") if "\ndef command(" in file.read_text()}
    assert with_command == set(cli_main.COMMANDS) - set(cli_main.MODULES)


@pytest.mark.parametrize("name", list(cli_main.COMMANDS))
def test_every_command_says_what_it_does_and_ends_its_help_with_an_example(name: str) -> None:
    command = cli_main.cli.get_command(click.Context(cli_main.cli), name)
    assert command is not None
    assert command.get_short_help_str(limit=200) == cli_main.COMMANDS[name]
    commands = [command, *(command.commands.values() if isinstance(command, click.Group) else [])]
    for each in commands:
        shown = each.get_help(click.Context(each, info_name=each.name)).split("\n\nOptions:")[0].rstrip()
        example = shown.split("\n\n")[-1].split("\n")
        assert example[0] == "  Example:", f"`{name} {each.name}` ends its help without an example on lines of its own"
        assert all("pgdyno " in line for line in example[1:])


@pytest.mark.parametrize("arguments", [["--help"], ["--version"]])
def test_what_should_be_quick_imports_nothing_heavy(arguments: list[str]) -> None:
    # Times differ by machine and hour; what is imported does not, and it is what costs.
    program = (
        "import sys\nfrom pgdyno.cli.main import run\n"
        f"run({arguments!r})\nprint('\\n'.join(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert sorted(set(HEAVY) & set(done.stderr.split())) == []
    assert "pgdyno.base.engine" not in done.stderr.split()


def test_the_help_of_a_command_imports_nothing_heavy() -> None:
    """All in one process, which prints after each what has been imported by then."""
    program = (
        "import sys\nfrom pgdyno.cli.main import run\n"
        f"for name in {list(cli_main.COMMANDS)!r}:\n"
        f"    run([name, '--help'])\n    print(name, *({set(HEAVY)!r} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.splitlines() == list(cli_main.COMMANDS)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell: str) -> None:
    done = pgdyno("show", "completion", shell)
    assert done.returncode == 0
    assert "_PGDYNO_COMPLETE" in done.stdout


def test_completion_of_a_command_name() -> None:
    done = pgdyno(_PGDYNO_COMPLETE="bash_complete", COMP_WORDS="pgdyno re", COMP_CWORD="1")
    assert done.stdout == "plain,reproduce\nplain,report\n"


def test_a_reader_that_goes_away_is_no_error() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "pgdyno", "--help"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as run:
        assert run.stdout is not None and run.stderr is not None
        run.stdout.close()
        assert run.stderr.read() == b""


def ended_with(*arguments: str, unread: str, folder: Path) -> int:
    """Exit code of a command of which one stream, or both, are a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        streams = {name: writing if name in unread else subprocess.DEVNULL for name in ("stdout", "stderr")}
        command = [sys.executable, "-m", "pgdyno", *arguments]
        environment = os.environ | {"PGDYNO_RESULTS": str(folder)}
        done = subprocess.run(command, check=False, env=environment, stdout=streams["stdout"], stderr=streams["stderr"])
    finally:
        os.close(writing)
    return done.returncode


def test_a_reader_that_has_gone_is_no_failure_and_work_that_was_broken_off_is(tmp_path: Path) -> None:
    assert ended_with("runs", "--json", unread="stdout", folder=tmp_path) == errors.EXIT_OK
    assert ended_with("--help", unread="stdout", folder=tmp_path) == errors.EXIT_OK
    assert ended_with("runs", unread="stderr", folder=tmp_path) != errors.EXIT_OK
    assert ended_with("runs", "--json", unread="stdout stderr", folder=tmp_path) != errors.EXIT_OK


DROPS = """
import os, signal, sys, time
import click
from pgdyno.cli import main

class Dropping:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        self.after = "the signal was heard here"

def wait():
    Dropping()
    time.sleep(20)  # or until the signal is heard

main.LazyGroup.get_command = lambda self, ctx, name: click.Command("doctor", callback=wait)
sys.argv = ["pgdyno", "doctor"]
signal.signal(signal.SIGINT, signal.default_int_handler)
main.main()
"""


def test_an_interruption_that_python_drops_comes_again() -> None:
    done = subprocess.run([sys.executable, "-c", DROPS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (errors.EXIT_INTERRUPTED, "\ninterrupted\n")


WAITS = """
import signal, sys
import click
from pgdyno.cli import main

def wait():
    try:
        print("begun", flush=True)
        sys.stdin.read()
    finally:
        print("undone", flush=True)

main.LazyGroup.get_command = lambda self, ctx, name: click.Command("doctor", callback=wait)
sys.argv = ["pgdyno", "doctor"]
signal.signal(signal.SIGHUP, signal.SIG_DFL)
main.main()
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_command_lets_it_undo_its_work(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WAITS],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begun\n"
        process.send_signal(number)
        try:
            result, _ = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (result, process.returncode) == ("undone\n", errors.EXIT_INTERRUPTED)


_UNDOING = """
import os, signal, subprocess, sys
from pgdyno.cli import main as pgdyno

def work(arguments=None):
    try:
        os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    finally:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            os.kill(os.getpid(), number)
        # What undoes is not interrupted either: Ctrl-C reaches every process of the terminal.
        subprocess.run(["sh", "-c", "kill -INT $$; echo undone"], check=True)

def run():
    try:
        work()
    except KeyboardInterrupt:
        return pgdyno.EXIT_INTERRUPTED

pgdyno.run = run
pgdyno.main()
"""


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_second_signal_does_not_interrupt_the_undoing(number: str) -> None:
    process = subprocess.run([sys.executable, "-c", _UNDOING, number], capture_output=True, text=True, check=False)
    assert (process.returncode, process.stdout) == (errors.EXIT_INTERRUPTED, "undone\n"), process.stderr


_BROKEN_INSIDE = """
import errno, os
from pgdyno.cli import main as pgdyno
from pgdyno.machine import volume

def list_volumes():
    raise OSError(errno.EPIPE, os.strerror(errno.EPIPE))

volume.list_volumes = list_volumes
pgdyno.sys.exit(pgdyno.run(["volume", "list", "--json"]))
"""


def test_a_pipe_that_breaks_inside_is_not_taken_for_a_reader_that_left() -> None:
    """It ended a command without a word, as if `| head` had read enough."""
    process = subprocess.run([sys.executable, "-c", _BROKEN_INSIDE], capture_output=True, text=True, check=False)
    assert process.returncode == errors.EXIT_FAILURE
    assert process.stdout == ""
    assert "a pipe to another program broke" in process.stderr
    assert "remedy:" in process.stderr
