"""Every command of the documents is run, in the order of its document, as root, on volumes that are really attached.

Experiments run on the fake world; `make bench ONLY=docs` measures them on emulated volumes.

A document runs in a folder that looks like a clone: `.venv/bin/pgdyno`, `results/` with a recorded experiment,
`experiments/`. `sudo` is a script that does nothing more; ``/mnt`` is a folder of the test's, ``db.example`` a server of its own. :mod:`tests.docs.small`
makes measurements short. What is not run is said in the text with its reason, and counted here.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import click
import pytest

from pgdyno.cli.main import cli
from tests.analysis.synthetic import make_experiment
from tests.docs import datasets
from tests.docs.bucket import somebodys_bucket
from tests.docs.documents import EXAMPLES, ROOT, Example
from tests.docs.forked import forking
from tests.docs.server import HOST, SomebodysServer, somebodys_server
from tests.docs.small import EMULATED, smaller

NOT_RUN_AT_MOST = 26
"""Commands that the documents may mark as not run; five need an account of Amazon's, two build or run the image, five need other hosts, four cut the power
for minutes, one needs HammerDB's tables. Lower it when there are fewer."""
TIMEOUT_S = 180.0
RECORDED = "20261121T124500Z-compare-5c0ffe"
"""The experiment that the documents name."""
OPTIONAL_TOOLS = ("jq", "fio", "psql")
"""Programs of others that a document may use; a command that needs one is left out where it is missing."""
COULD_BE_3 = re.compile(r"pgdyno doctor\b(?!.*--clean)")
"""`doctor` ends with 3 on a machine that lacks something, and says what: as documented."""
LOADS = ROOT / "tests" / "size" / "files"
LOGS = ROOT / "tests" / "capture" / "files"
SNAPPED = (
    "pgdyno volume attach null:size=1GiB --no-mount --name {0} >&2"
    " && pgdyno volume snapshot {0} --rate 10GiB/s | cut -d: -f1"
)
GIVEN: dict[str, str] = {
    r"--iostat (load\.txt)": f"cp {LOADS}/iostat-12.7.txt {{}}",
    r"--iostat '(hosts/\*\.txt)'": f"mkdir -p hosts; cp {LOADS}/iostat-12.7.txt hosts/alpha.txt; cp {LOADS}/iostat-12.7.txt hosts/beta.txt",
    r"--sar (load\.sar)": f"cp {LOADS}/sar-12.txt {{}}",
    r"--cloudwatch (answer\.json)": f"cp {LOADS}/cloudwatch.json {{}}",
    r"(?:stats|detach|nvme|serve) (gp3-1)\b": "pgdyno volume attach gp3 --no-mount --name gp3-1 >&2",
    r"cloudwatch (gp2-1)\b": "pgdyno volume attach gp2 --no-mount --name gp2-1 >&2",
    r"modify (data)\b": "pgdyno volume attach gp3:size=200GiB --no-mount --name data >&2",
    r"fail (wal)\b": "pgdyno volume attach gp3 --no-mount --name wal >&2",
    r"mark (logged)\b": "pgdyno volume attach gp3 --no-mount --name logged --write-log logged.log >&2",
    r"(?:fail|heal) (data)\b": "pgdyno volume attach gp3 --no-mount --name data >&2",
    r"fail (mirror)\b": "pgdyno volume attach raid10:2xgp3 --no-mount --name mirror >&2",
    r"cloudwatch (results/\S+/runs/\S+)": f"ls -d results/{RECORDED}/runs/* | head -1",
    r"--diagnose (watches)\b": "pgdyno diagnose service=app --keep watched >&2; echo watched",
    r"diagnose (watches/\S+)": "pgdyno diagnose service=app --keep kept >&2; ls -d kept/*-diagnose-*",
    r"--against (results/\S+)": f"ls -d results/{RECORDED}",
    r"report (results/\*-hammerdb-oltp-\*) ": f"ls -d results/{RECORDED}",
    r" (results/\*-hammerdb-olap-\*) --summary": f"ls -d results/{RECORDED}",
    r"load (people\.csv)": "printf 'id,name\\n1,Ann\\n2,Bo\\n' > {0}; echo {0}",
    r"load '(part-\*\.csv)'": "printf 'id,name\\n3,Cy\\n' > part-1.csv; echo '{0}'",
    r"(?:--restore|add) (shop\.dump)": "cp experiments/shop/shop.sql {}",
    r"--globals (globals\.sql)": "cp experiments/shop/globals.sql {}",
    r"(history\.sql)@9": "cp experiments/shop/history.sql {}",
    r"(order\.sql)@1": "cp experiments/shop/order.sql {}",
    r"capture read (postgresql\.csv)": f"cp {LOGS}/shop.csv {{}}",
    r"capture read (postgresql\.log)": f"cp {LOGS}/shop.log {{}}",
    r"capture record --listen (127\.0\.0\.1:6432)": f"{sys.executable} {ROOT}/tests/docs/client.py",
    r"capture (?:show|replay) (shop\.capture)": f"test -e {{0}} || pgdyno capture read {LOGS}/shop.csv --output {{0}} >&2",
    r"snapshot (?:take )?(shop) shop-wal": (
        "pgdyno volume attach null:size=1GiB --no-mount --name shop --instance shop >&2"
        " && pgdyno volume attach null:size=1GiB --no-mount --name shop-wal --instance shop >&2"
    ),
    r"snapshot take --instance (db)": "pgdyno volume attach null:size=1GiB --no-mount --name db-data --instance db >&2",
    r"(?: restore| delete| copy) (snap-1)\b": SNAPPED.format("snapped"),
    r" archive (snap-2)\b": SNAPPED.format("cold"),
    r"fsr (snap-3)\b": SNAPPED.format("restored-often"),
    r"--volume (orders)\b": "pgdyno volume attach null:size=1GiB --no-mount --name orders >&2",
    r"volume policy (snapshots\.toml)": f"sed -n '/^```toml/,/^```$/p' {ROOT}/docs/concept/retention.md | grep -v '^```' > {{}}",
    r"--image (/dev/shm/saved)": (
        "pgdyno volume attach gp3:size=2GiB --name source --mount source >&2"
        " && pgdyno volume detach source --save-image $PGDYNO_IMAGE_DIR/saved >&2 && echo $PGDYNO_IMAGE_DIR/saved"
    ),
    r"--resume (results/\S+)": (
        "pgdyno run experiments/wal-volume.toml --only 1 --results begun >&2; ls -d begun/*-wal-volume-*"
    ),
}
"""What the reference supposes: a name in a command (an attached volume, a folder) -> how it comes to be there.

What is printed to standard output is the name that it has here.
"""


@dataclass(frozen=True)
class Clone:
    """A folder to run a document in."""

    folder: Path
    environment: dict[str, str]
    server: SomebodysServer
    names: dict[str, str]
    """A name in a document -> what it is here."""
    seen: set[str]
    """Measurements that another document has run already: what they come to, made small."""

    def bash(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run one line as a shell in that folder does."""
        with subprocess.Popen(
            ["bash", "-eo", "pipefail", "-c", self.here(text)],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                out, err = process.communicate(timeout=TIMEOUT_S)
            except subprocess.TimeoutExpired:
                # With all that it started: a child that holds the pipe would keep this test for ever.
                os.killpg(process.pid, signal.SIGKILL)
                out, err = process.communicate()
                err += f"not done after {TIMEOUT_S:.0f} s\n"
        return subprocess.CompletedProcess(text, process.returncode, out, err)

    def here(self, text: str) -> str:
        """A command with the places that only its document has, as they are here."""
        for name, other in {"/mnt/": f"{self.folder}/mnt/", HOST: self.server.where, **self.names}.items():
            text = text.replace(name, other)
        return text

    def has(self, name: str) -> bool:
        """Whether there is a folder, or a volume, of that name."""
        return (self.folder / name).exists() if "/" in name else name in self.attached()

    def attached(self) -> list[str]:
        """Names of the volumes that are attached."""
        listed = subprocess.run(
            ["pgdyno", "volume", "list", "--json"], env=self.environment, capture_output=True, text=True, check=True
        )
        return [volume["name"] for volume in json.loads(listed.stdout)["volumes"]]


def _script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SomebodysServer]:
    with somebodys_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The shell's words for ``pgdyno``."""
    with forking(tmp_path_factory.mktemp("forked")) as words:
        yield words


@pytest.fixture(scope="module")
def bucket() -> Iterator[dict[str, str]]:
    with somebodys_bucket() as document:
        yield document


@pytest.fixture(scope="module")
def seen() -> set[str]:
    return set()


@pytest.fixture(scope="module")
def loaded() -> Iterator[Path]:
    """A folder of data sets that the documents share, where images are made."""
    folder = Path(os.environ["PGDYNO_IMAGE_DIR"]) / "documents"
    folder.mkdir()
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment that nobody ran."""
    return make_experiment(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def clone(
    state_dir: Path,
    image_dir: Path,
    server: SomebodysServer,
    bucket: dict[str, str],
    seen: set[str],
    loaded: Path,
    command: str,
    recorded: Path,
) -> Iterator[Clone]:
    """A folder that looks like a clone, with a recorded experiment; volumes that a document leaves are detached."""
    folder = Path(tempfile.mkdtemp(prefix="d-")).resolve()
    folder.chmod(0o755)  # PostgreSQL's user must be able to walk through
    for place in (folder / "bin" / "pgdyno", folder / ".venv" / "bin" / "pgdyno"):
        _script(place, f'exec {command} "$@"')
    _script(folder / "bin" / "sudo", 'exec "$@"')
    _script(folder / "bin" / "make", f'exec "{shutil.which("make")}" --old-file=setup "$@"')  # set up already: we run
    for name in ("Makefile", "experiments", "catalog", "tools", "python"):
        if (ROOT / name).exists():
            (folder / name).symlink_to(ROOT / name)
    for name in (
        "home/.zfunc",
        "home/.config/fish/completions",
        "home/.local/share/bash-completion/completions",
        "mnt",
    ):
        (folder / name).mkdir(parents=True)
    shutil.copytree(recorded, folder / "results" / RECORDED)
    environment = {name: value for name, value in os.environ.items() if name != "PGDYNO_RESULTS"}
    environment |= {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}", "HOME": str(folder / "home")}
    environment["PGDYNO_DATABASE_DIR"] = str(folder / "databases")
    environment |= {"PGSERVICEFILE": str(server.services), datasets.PLACE: str(loaded), **bucket}
    clone = Clone(folder, environment, server, {}, seen)
    yield clone
    for name in clone.attached():
        assert clone.bash(f"pgdyno volume detach {name}").returncode == 0
    shutil.rmtree(folder)


def why_left_out(example: Example) -> str:
    """Why a command is not run here; empty when it is."""
    words = re.findall(r"(?:^|\||&&)\s*(?:sudo )?([\w./-]+)", example.text)
    missing = [tool for tool in OPTIONAL_TOOLS if tool in words and shutil.which(tool) is None]
    elsewhere = {_plain(other.text): other.why_not for other in EXAMPLES if other.why_not}
    return elsewhere.get(_plain(example.text), "") or (f"needs {', '.join(missing)}" if missing else "")


def _plain(text: str) -> str:
    """A command as the reference writes it; what a guide marks as not run is not run there either."""
    return text.replace("sudo ", "").replace(".venv/bin/", "")


def measurement(example: Example) -> str | None:
    """What a measurement comes to when it is small, the same for all that differ in words only; None for another command.

    A measurement leaves nothing that a later command of its document needs.
    """
    plain = _plain(example.text)
    words = shlex.split(plain)
    if words[:1] != ["pgdyno"] or words[1] not in ("compare", "demo", "drive", "run"):
        return None
    files = [word for word in words if word.endswith(".toml") and words[1] == "run"]
    if {"--help", "--resume", "|", ">", "&&"} & set(words) or not all((ROOT / file).is_file() for file in files):
        return plain
    command = cli.get_command(click.Context(cli), words[1])
    assert command is not None
    with contextlib.chdir(ROOT):
        params = command.make_context(words[1], smaller(words[1:])[1:]).params
    # Of a key that is set twice the last one counts.
    params["assignments"] = sorted(
        dict(assignment.split("=", 1) for assignment in params.get("assignments", ())).items()
    )
    return repr((words[1], sorted(params.items())))


def run(example: Example, clone: Clone) -> str | None:
    """Run a command after what it supposes; what went wrong, or ``None``."""
    measured = measurement(example)
    if measured in clone.seen:
        return None
    for pattern, given in GIVEN.items():
        named = re.search(pattern, example.text)
        if named and named.group(1) not in clone.names and not clone.has(named.group(1)):
            made = clone.bash(given.format(named.group(1)))
            if made.returncode != 0:
                return f"{example}: what `{example.text}` supposes could not be made\n{made.stdout}{made.stderr}"
            clone.names.update({named.group(1): made.stdout.strip()} if made.stdout else {})
    done = clone.bash(example.text)
    if done.returncode == 0 or (done.returncode == 3 and COULD_BE_3.search(example.text)):
        clone.seen.update(() if measured is None else (measured,))
        return None
    return f"{example}: $ {example.text}\nended with {done.returncode}\n{done.stdout}{done.stderr}"


DOCUMENTS = tuple(dict.fromkeys(example.document for example in EXAMPLES))


def every_command_runs(document: str, clone: Clone) -> None:
    """Run a document's commands; what is left out is printed with its reason."""
    results = [example for example in EXAMPLES if example.document == document]
    left_out = {example: why for example in results if (why := why_left_out(example))}
    failed = [what for example in results if example not in left_out if (what := run(example, clone)) is not None]
    print(f"{document}: {len(results) - len(left_out)} of {len(results)} commands run")
    for example, why in left_out.items():
        print(f"  {example} not run: {example.text}: {why}")
    assert failed == [], "\n".join(failed)


@pytest.mark.needs_fuse
@pytest.mark.slow
@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_commands_of_a_document_run(document: str, clone: Clone) -> None:
    every_command_runs(document, clone)


@pytest.mark.bench
@pytest.mark.needs_fuse
@pytest.mark.parametrize("document", DOCUMENTS)
def test_the_experiments_of_a_document_run_on_emulated_volumes(
    document: str, clone: Clone, monkeypatch: pytest.MonkeyPatch
) -> None:
    clone.environment[EMULATED] = "1"
    monkeypatch.setenv(EMULATED, "1")  # what a measurement comes to is judged here
    every_command_runs(document, clone)


def test_few_commands_are_not_run_and_each_says_why() -> None:
    marked = [example for example in EXAMPLES if example.why_not]
    assert len(marked) <= NOT_RUN_AT_MOST, "\n".join(f"{item}: {item.text}: {item.why_not}" for item in marked)
    assert all(len(example.why_not.split()) > 2 for example in marked), "a reason is a phrase"
