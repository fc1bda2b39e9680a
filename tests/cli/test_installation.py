"""However pgdyno was installed, its engine and its files are found, and its remedies name commands that exist there."""

from __future__ import annotations

import ast
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pgdyno import _build
from pgdyno.base import engine, installation
from pgdyno.base.errors import EngineMissing, HostError
from pgdyno.cli.main import cli
from pgdyno.machine import preflight

ROOT = Path(__file__).resolve().parents[2]
PLACES = {
    "pip install --prefix": ("prefix/lib/python3.11/site-packages", "prefix/bin"),
    "pip install --user": ("home/.local/lib/python3.13/site-packages", "home/.local/bin"),
    "pip install --target": ("target", "target/bin"),
    "Debian's own scheme": ("usr/local/lib/python3.11/dist-packages", "usr/local/bin"),
    "a 64-bit library folder": ("prefix/lib64/python3.12/site-packages", "prefix/bin"),
    "an overlay of uv run --with": ("cache/archive-v0/x/lib/python3.12/site-packages", "cache/archive-v0/x/bin"),
    "a virtual environment that was moved": ("moved/lib/python3.14/site-packages", "moved/bin"),
}
"""A way to install -> where the package lies, and where the programs."""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An interpreter that has no engine beside it; the package is put somewhere by the test."""
    monkeypatch.delenv("PGDYNO_ENGINE", raising=False)
    monkeypatch.setattr(installation.sysconfig, "get_path", lambda name, scheme="": str(tmp_path / f"none{scheme}"))
    return tmp_path


def put(folder: Path) -> Path:
    """An engine in a folder."""
    program = folder / engine.BINARY
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("way", PLACES)
def test_the_engine_is_found(way: str, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, programs = PLACES[way]
    monkeypatch.setattr(_build, "PACKAGE", installed / package / "pgdyno")
    monkeypatch.setattr(_build, "FILES", installed / package / "pgdyno" / "_files")
    program = put(installed / programs)
    put(installed / "none")  # another one, beside the interpreter
    assert engine.find() == program
    assert installation.data_folder("schema") == installed / package / "pgdyno" / "_files" / "schema"


@pytest.mark.parametrize("scheme", ["", installation.sysconfig.get_preferred_scheme("user")])
def test_the_engine_of_a_clone_is_beside_the_interpreter_or_in_the_users_scheme(
    scheme: str, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_build, "PACKAGE", ROOT / "python" / "pgdyno")
    program = put(installed / f"none{scheme}")
    assert engine.find() == program


def test_the_error_lists_where_the_engine_was_looked_for(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_build, "PACKAGE", installed / "lib/python3.11/site-packages/pgdyno")
    (installed / "bin").mkdir()
    (installed / "bin" / engine.BINARY).touch()  # not executable
    with pytest.raises(EngineMissing) as caught:
        engine.find()
    for place in ("lib/python3.11/site-packages/bin", "bin", "none"):
        assert str(installed / place / engine.BINARY) in caught.value.message
    assert "pip install" in caught.value.remedy


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        ("pipx_metadata.json", "run `pipx reinstall pgdyno`"),
        ("uv-receipt.toml", "run `uv tool upgrade --reinstall pgdyno`"),
        ("pyvenv.cfg", "-m pip install --force-reinstall"),
    ],
)
def test_a_remedy_names_the_program_that_installed(
    mark: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_build, "PACKAGE", ROOT / "python" / "pgdyno")
    assert installation.how_to_install_again() == "run `make setup`"
    monkeypatch.setattr(_build, "PACKAGE", tmp_path / "pgdyno")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    (tmp_path / mark).touch()
    assert command in installation.how_to_install_again()


def own_settings(monkeypatch: pytest.MonkeyPatch, *names: str, sudo: str | None = "/usr/bin/sudo") -> None:
    """Have an environment of these variables of pgdyno's and no others, on a machine that has sudo or not."""
    monkeypatch.setattr(installation.shutil, "which", lambda _: sudo)
    for name in [name for name in installation.os.environ if name.startswith("PGDYNO_")]:
        monkeypatch.delenv(name)
    for name in names:
        monkeypatch.setenv(name, "x")


def test_needs_root_names_the_whole_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(sys, "argv", ["bin/pgdyno", "volume", "attach", "gp3", "--mount", "/mnt/a b"])
    with pytest.raises(HostError) as caught:
        preflight.require_root("attaching a volume")
    assert caught.value.remedy == f"run `sudo {tmp_path}/bin/pgdyno volume attach gp3 --mount '/mnt/a b'`"
    own_settings(monkeypatch, "PGDYNO_RESULTS", "PGDYNO_IMAGE_DIR")
    assert installation.how_to_run_as_root(["doctor"]) == (
        f"run `sudo --preserve-env=PGDYNO_IMAGE_DIR,PGDYNO_RESULTS {tmp_path}/bin/pgdyno doctor`"
    )


def test_where_there_is_no_sudo_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch, sudo=None)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "pgdyno"), "compare", "null", "null"])
    monkeypatch.setattr(installation.os, "geteuid", lambda: 1000)
    command = f"run `{tmp_path}/pgdyno compare null null`"
    assert installation.how_to_run_as_root() == f"{command} as root; in a container pass `--user root`"
    monkeypatch.setattr(installation.os, "geteuid", lambda: 0)
    assert installation.how_to_run_as_root() == command


def test_a_module_that_is_run_and_another_program_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    own_settings(monkeypatch)
    monkeypatch.setattr(sys, "argv", [str(_build.PACKAGE / "__main__.py"), "doctor"])
    expected = shlex.join(["sudo", sys.executable, "-m", "pgdyno", "doctor"])
    assert installation.how_to_run_as_root() == f"run `{expected}`"
    monkeypatch.setattr(sys, "argv", ["pytest"])
    assert "pytest" not in installation.how_to_run_as_root()


@pytest.mark.parametrize("dsn", ["host=db password=geheim", "postgresql://me:geheim@db/app"])
def test_a_password_is_not_repeated(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/opt/pgdyno", "run", "x.toml", "--dsn", dsn])
    how_to_run_as_root = installation.how_to_run_as_root()
    assert "/opt/pgdyno" in how_to_run_as_root and "same arguments" in how_to_run_as_root
    assert "geheim" not in how_to_run_as_root


def remedies() -> Iterator[tuple[str, str]]:
    """Place and text of every remedy, as far as it is written out: of errors, of doctor's checks, of the engine's errors."""
    for path in sorted(_build.PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            named = [node.value] if isinstance(node, ast.keyword) and node.arg == "remedy" else []
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "HostCheck":
                named += node.args[3:]
            for part in (part for value in named for part in ast.walk(value)):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield f"{path.name}:{part.lineno}", part.value
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        for line, text in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            if not text.lstrip().startswith("//"):  # what is said to users, and no comment
                yield f"{path.name}:{line}", text


SPANS = sorted(
    {(place, span) for place, text in remedies() for span in re.findall(r"`(?:sudo )?pgdyno ([a-z-][^`{}]*)`?", text)}
)


def of(span: str, place: str) -> tuple[click.Command, list[str]]:
    """The command that a span names, and the words that lead to it."""
    command: click.Command = cli
    context = click.Context(command)
    words = []
    for word in span.split():
        if isinstance(command, click.Group) and re.fullmatch(r"[a-z-]+", word) and not word.startswith("-"):
            inner = command.get_command(context, word)
            assert inner is not None, f"{place}: there is no `{word}` in `pgdyno {span}`"
            command = inner
            words.append(word)
        elif word.startswith("--") and word != "--help":
            flags = {flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)}
            assert word.split("=")[0] in flags, f"{place}: there is no `{word}` in `pgdyno {span}`"
    return command, words


def test_every_command_that_a_remedy_names_exists_and_has_help() -> None:
    assert len([place for place, _ in SPANS if place.partition(":")[0].endswith(".py")]) > 20
    assert [place for place, _ in SPANS if place.partition(":")[0].endswith(".rs")], (
        "the engine's have lost their commands"
    )
    texts = {tuple(words) for place, span in SPANS for _, words in [of(span, place)]}
    assert len(texts) > 10
    for words in texts:
        done = CliRunner().invoke(cli, [*words, "--help"])
        assert done.exit_code == 0 and "Usage:" in done.output, words


def test_what_a_clone_alone_has_is_named_in_one_place() -> None:
    places = {place.partition(":")[0] for place, text in remedies() if re.search(r"`make |\.venv/", text)}
    assert places == set(), "the remedy is pgdyno.base.installation's: an installed pgdyno has no Makefile"


RACE = """
import sys, threading
from pgdyno.base import installation
sys.setswitchinterval(1e-6)
begin, found = threading.Barrier(8), []
def look():
    begin.wait()
    found.append(installation.program_folders())
threads = [threading.Thread(target=look) for _ in range(8)]
for one in threads: one.start()
for one in threads: one.join()
assert len(found) == 8 and all(one == found[0] for one in found), found
"""


def test_several_threads_may_be_the_first_to_look_for_the_engine() -> None:
    done = subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
