"""What the world does to a command: no room, closed streams, folders without rights, missing rights, signals.

Whatever it is, the user reads one sentence, the exit code is a documented one, and no traceback appears. All commands are
walked, so that this holds for a new one too.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from pgdyno.base.errors import EXIT_CODES, EXIT_HOST, EXIT_INTERRUPTED, EXIT_OK, EXIT_USAGE
from tests.cli import commands, forked
from tests.cli.commands import Places
from tests.cli.forked import Ended, Job

WRITTEN = {
    "capture read --output",
    "capture record --output",
    "compare --results",
    "crashtest --keep",
    "crashtest --results",
    "diagnose --html",
    "diagnose --keep",
    "show examples --copy",
    "data generate imdb --out",
    "data generate tpch --out",
    "hosts keys --out",
    "load --recommend",
    "load --reject",
    "report --output",
    "reproduce --html",
    "reproduce --results",
    "run --results",
    "run --resume",
    "size --html",
    "volume attach --mount",
    "volume attach --submit-log",
    "volume attach --write-log",
    "volume detach --save-image",
    "volume restore --mount",
    "volume fit --output",
}
"""Options whose path a command writes to."""
READ = {
    "capture read logs",
    "capture replay capture",
    "capture show capture",
    "compare --pg-bin",
    "crashtest --pg-bin",
    "crashtest --recording",
    "crashtest file",
    "data add --pg-bin",
    "doctor --hosts",
    "drive --pg-bin",
    "drive --setup",
    "hosts scheduler --keys",
    "hosts worker --keys",
    "metrics serve --diagnose",
    "query --results",
    "report --results",
    "reproduce --from",
    "run --drivers",
    "run --keys",
    "run file",
    "runs --results",
    "size --cloudwatch",
    "size --iostat",
    "size --keys",
    "size --sar",
    "volume attach --image",
    "volume fit path",
    "volume policy file",
}
"""Options and arguments whose path is read."""
MADE = {"captures", "imdb", "keys", "tpch"}
"""Folders of files that commands make, of which those stay that were whole."""
DIFFERENT = {
    "capture read --json",
    "doctor",
    "doctor --json",
    "data generate imdb --json",
    "data generate tpch --json",
    "hosts keys",
    "hosts keys --json",
}
"""Commands that print the time that they took, what the machine has at the moment, or a path that each job has for itself."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STEPS = 2
"""Where a command is interrupted in `make test`: after equal shares of its calls. `make bench ONLY=cli` takes more."""


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    folder = tmp_path_factory.mktemp("world")
    folder.chmod(0o755)
    return commands.make_places(folder)


@pytest.fixture(scope="module", autouse=True)
def kept() -> Iterator[None]:
    with forked.kept():
        yield


def sound(name: str, ended: Ended, *codes: int) -> None:
    """One sentence, a documented code, no traceback."""
    assert "Traceback" not in ended.err and "this is a bug" not in ended.err, f"{name}: {ended.err}"
    assert ended.code in (codes or EXIT_CODES), f"{name} ended with {ended.code}: {ended.err}"


def test_every_command_is_walked() -> None:
    tables = {*commands.QUICK, *commands.ROOT, *commands.SERVER}
    assert tables == set(commands.leaves()), "a command belongs in one table of tests/cli/commands.py"


def test_every_path_is_known_to_be_read_or_written() -> None:
    texts = {
        f"{name} {parameter.opts[-1]}"
        for name, command in commands.leaves().items()
        for parameter in command.params
        if isinstance(parameter.type, click.Path)
    }
    assert texts == WRITTEN | READ, "a path that is written belongs in a test of this file"


def unwritten(texts: dict[str, list[str]], how: str) -> None:
    """Run commands with a standard output that is full or closed."""
    reason = {"full": "No space left on device", "closed": "Bad file descriptor"}[how]
    ended = forked.run([Job(words, stdout=how) for words in texts.values()])
    for name, item in zip(texts, ended, strict=True):
        if name in commands.SILENT:
            sound(name, item, EXIT_OK)
            continue
        sound(name, item, EXIT_HOST)
        assert f"error: standard output cannot be written: {reason}\n" in item.err, f"{name}: {item.err}"
        assert item.err.count("error:") == 1, name


def test_output_that_cannot_be_written_is_said(places: Places) -> None:
    unwritten(places.quick(), "full")
    unwritten({name: places.quick()[name] for name in ("query", "size", "show completion", "catalog show")}, "closed")


@pytest.mark.bench
def test_no_output_of_any_command_can_be_lost_in_silence(places: Places) -> None:
    for how in ("full", "closed"):
        unwritten(places.quick() | places.quick_json(), how)


def unheard(texts: dict[str, list[str]]) -> None:
    """Run commands with a standard error that is full or closed: what they print is the same."""
    jobs = [Job(words, stderr=how) for words in texts.values() for how in ("file", "full", "closed")]
    ended = iter(forked.run(jobs))
    for name in texts:
        usual, *others = (next(ended) for _ in range(3))
        sound(name, usual, EXIT_OK)
        assert [item.code for item in others] == [EXIT_OK, EXIT_OK], name
        if name not in DIFFERENT:
            assert [item.out for item in others] == [usual.out] * 2, name


def test_messages_that_cannot_be_written_change_no_result(places: Places) -> None:
    unheard({name: places.quick()[name] for name in ("query", "volume list", "data generate imdb")})


@pytest.mark.bench
def test_messages_of_any_command_that_cannot_be_written_change_no_result(places: Places) -> None:
    unheard(places.quick() | places.quick_json())


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_that_lacks_a_letter_gets_another(places: Places, encoding: str) -> None:
    words = places.words("size --iostat {folder}/load.txt --size 100GiB --type gp3-2023")
    _, ended = forked.run([Job(words), Job(words)], PYTHONIOENCODING=encoding)
    sound(encoding, ended, EXIT_OK)
    assert "gp3-2023" in ended.out


NOBODY = ("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups")
NO_MOUNTS = ("setpriv", "--inh-caps=-sys_admin", "--bounding-set=-sys_admin")


def only_as(prefix: tuple[str, ...]) -> None:
    """Skip where commands cannot be run so."""
    if os.geteuid() != 0 or shutil.which("setpriv") is None:
        pytest.skip("needs root and setpriv (apt install util-linux)")
    if prefix == NOBODY:
        closed = [path for path in (Path(__file__).resolve(), Path(sys.prefix)) for path in (path, *path.parents)]
        if any(not path.stat().st_mode & 0o005 for path in closed):
            pytest.skip("another user cannot read this source tree")


def unwritable(places: Places, at_each: int) -> None:
    """Have each command write to so many of the places where nobody can, in turn."""
    written = {
        "report --output": "report {experiment} --format csv --output {place}/made.csv",
        "report, page": "report {experiment} --output {place}/made.html",
        "report, figures": "report {experiment} --format svg --output {place}/made",
        "reproduce --html": "reproduce io2 --from {results} --html {place}/made.html",
        "size --html": "size --iostat {folder}/load.txt --size 100GiB --type gp3 --html {place}/made.html",
        "diagnose --html": "diagnose --iostat {folder}/load.txt --bought data=gp3 --html {place}/made.html",
        "capture read --output": "capture read {folder}/shop.csv --output {place}/made",
        "data generate imdb --out": "data generate imdb --scale 0.00001 --threads 1 --out {place}/made",
        "data generate tpch --out": "data generate tpch --scale 0.001 --threads 1 --out {place}/made",
        "hosts keys --out": "hosts keys --out {place}/made",
        "volume fit --output": "volume fit {folder} --output {place}/made.toml",
        "show examples --copy": "show examples wal-volume --copy {place}/made",
    }
    bad = itertools.cycle(["/proc", "/sys/kernel", str(places.folder / "load.txt")])
    jobs = {
        f"{name} in {place}": Job(places.words(text, place=place))
        for name, text in written.items()
        for place in itertools.islice(bad, at_each)
    }
    for name, ended in zip(jobs, forked.run(list(jobs.values())), strict=True):
        sound(name, ended, EXIT_HOST, EXIT_USAGE)
        assert "remedy:" in ended.err, f"{name}: {ended.err}"


def test_a_place_that_cannot_be_written_is_said(places: Places) -> None:
    """Read only, below a file, in the kernel's own file systems, where even root makes nothing."""
    unwritable(places, 1)


@pytest.mark.bench
def test_every_place_that_cannot_be_written_is_said(places: Places) -> None:
    unwritable(places, 3)


def test_a_device_or_a_link_is_written_to_and_not_replaced(places: Places) -> None:
    """As root a page would otherwise take the place of /dev/null."""
    link, target = places.folder / "link.csv", places.folder / "target.csv"
    null = places.folder / "null.csv"
    target.touch()
    link.symlink_to(target)
    null.symlink_to("/dev/null")
    text = "report {experiment} --format csv --output {folder}/"
    page = "report {experiment} --output /dev/null"
    ended = forked.run([Job(places.words(other)) for other in (f"{text}link.csv", f"{text}null.csv", page)])
    assert [item.code for item in ended] == [EXIT_OK, EXIT_OK, EXIT_USAGE], [item.err for item in ended]
    assert link.is_symlink() and target.read_text().startswith("experiment")
    assert null.is_symlink() and Path("/dev/null").is_char_device()


@pytest.mark.parametrize("prefix", [NOBODY, NO_MOUNTS], ids=["nobody", "without CAP_SYS_ADMIN"])
def test_missing_rights_are_said(places: Places, prefix: tuple[str, ...]) -> None:
    only_as(prefix)
    texts = {name: places.words(text) for name, text in commands.ROOT.items()}
    state = str(places.folder / "state")
    jobs = [Job(words, environment={"PGDYNO_STATE_DIR": state}) for words in texts.values()]
    for name, ended in zip(texts, forked.run(jobs, prefix), strict=True):
        sound(name, ended)
        assert ended.code in (EXIT_HOST, EXIT_USAGE) and "remedy:" in ended.err, f"{name}: {ended.err}"


def interrupted(places: Places, steps: int, numbers: tuple[signal.Signals, ...]) -> None:
    """Send each command a signal after equal shares of its calls, and look at how it ends."""
    quick = places.quick()
    usual = dict(zip(quick, forked.run([Job(words, signal=-1) for words in quick.values()]), strict=True))
    kept = {path for path in places.folder.rglob("*") if not MADE & {*path.parts}}
    jobs, names = [], []
    for name, words in quick.items():
        for step in range(steps):
            number = numbers[(len(jobs)) % len(numbers)]
            at_call = 2 + usual[name].calls * step // steps  # the first is that of main itself
            jobs.append(Job(words, signal=number, at_call=at_call))
            names.append(f"{name}, {number.name} at call {at_call} of {usual[name].calls}")
    caught = 0
    for name, ended in zip(names, forked.run(jobs), strict=True):
        sound(name, ended, EXIT_INTERRUPTED, EXIT_OK)
        caught += ended.code == EXIT_INTERRUPTED
        if ended.code == EXIT_INTERRUPTED:
            assert ended.err.rstrip().endswith("interrupted"), f"{name}: {ended.err}"
    assert caught >= len(jobs) * 3 // 4, "a signal that nobody heard is no test"
    assert {path for path in places.folder.rglob("*") if not MADE & {*path.parts}} == kept


def test_a_signal_at_any_step_leaves_nothing_and_is_said(places: Places) -> None:
    interrupted(places, STEPS, SIGNALS)


@pytest.mark.bench
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_each_signal_at_many_steps_leaves_nothing_and_is_said(places: Places, number: signal.Signals) -> None:
    interrupted(places, 12, (number,))
