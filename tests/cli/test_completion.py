"""Completion in the shells themselves: their own syntax, registered, and asked for what begins with `re`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.synthetic import make_experiment

SHELLS = ("bash", "zsh", "fish")

ASK = {
    "bash": 'source "$1"; COMP_WORDS=(pgdyno re) COMP_CWORD=1; _pgdyno_completion pgdyno; printf "%s\\n" "${COMPREPLY[@]}"',
    # Outside the line editor nothing can be inserted: what it would be given is printed instead.
    "zsh": (
        'autoload -Uz compinit; compinit -u -D; source "$1"; print -r -- "$_comps[pgdyno]";'
        ' _describe() { print -l -r -- ${(P)2} ${(P)3} }; compadd() { print -l -r -- "$@" };'
        " words=(pgdyno re); CURRENT=2; _pgdyno_completion"
    ),
    "fish": 'source $argv[1]; complete --do-complete "pgdyno re"',
}
START = {"bash": ["bash", "--norc", "-c"], "zsh": ["zsh", "-f", "-c"], "fish": ["fish", "--no-config", "-c"]}


@pytest.fixture
def path_with_pgdyno(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory in PATH that has the command."""
    script = tmp_path / "bin" / "pgdyno"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pgdyno "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    return script.parent


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_the_commands(shell: str, path_with_pgdyno: Path, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell} (apt install {shell})")
    script = tmp_path / f"pgdyno.{shell}"
    made = run("pgdyno", "show", "completion", shell)
    assert made.returncode == 0, made.stderr
    script.write_text(made.stdout)
    assert run(shell, "-n", str(script)).stderr == ""
    arguments = [str(script)] if shell == "fish" else ["sh", str(script)]
    done = run(*START[shell], ASK[shell], *arguments)
    assert "report" in done.stdout, done.stderr
    assert "doctor" not in done.stdout
    assert done.stderr == ""


def test_options_are_completed_with_their_help(path_with_pgdyno: Path) -> None:
    words = {"_PGDYNO_COMPLETE": "fish_complete", "COMP_WORDS": "pgdyno compare --dur", "COMP_CWORD": "--dur"}
    done = subprocess.run(["pgdyno"], capture_output=True, text=True, check=True, env=os.environ | words)
    assert done.stdout.startswith("plain")
    assert "--duration" in done.stdout and "measured phase" in done.stdout


def completed(*words: str) -> list[str]:
    """What is offered for the last word."""
    document = {
        "_PGDYNO_COMPLETE": "bash_complete",
        "COMP_WORDS": " ".join(("pgdyno", *words)),
        "COMP_CWORD": str(len(words)),
    }
    done = subprocess.run(
        [sys.executable, "-m", "pgdyno"], capture_output=True, text=True, check=True, env=os.environ | document
    )
    assert done.stderr == ""
    return [line.partition(",")[2] for line in done.stdout.splitlines() if line]


def test_types_of_volumes_are_completed(engine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert completed("compare", "gp3") == ["gp3", "gp3-2023"]
    assert completed("volume", "attach", "io") == ["io2bx", "io1", "io2-2023", "io1-2018", "io1-2013"]
    monkeypatch.setenv("PGDYNO_ENGINE", "/nowhere")
    assert completed("compare", "g") == []


def test_recorded_experiments_are_completed(results_dir: Path) -> None:
    assert completed("report", "2026") == []
    recorded = make_experiment(results_dir)
    assert completed("report", "2026") == [recorded.name]


def test_no_volume_is_completed_where_none_is_attached(state_dir: Path) -> None:
    assert completed("volume", "detach", "g") == []


@pytest.mark.needs_fuse
def test_attached_volumes_are_completed(state_dir: Path) -> None:
    from pgdyno.machine import volume

    attached = volume.attach("null:size=64MiB", mount=None, name="mine")
    assert completed("volume", "detach", "m") == ["mine"]
    attached.detach()
