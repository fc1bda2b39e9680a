"""Standard output and standard error of a command in one log: what was printed first stands first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ERROR_AFTER_A_TABLE = """
import click
from pgdyno.cli import main, streams
from pgdyno.base.errors import RunInvalid

@click.command(name="shown")
def shown():
    print("the table")
    {said}

main.LazyGroup.get_command = lambda *_: shown
streams.install()
raise SystemExit(main.run(["doctor"]))
"""


def together(code: str) -> tuple[list[str], int]:
    """The lines of a program whose two outputs go into one pipe, as with ``2>&1 | tee``."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
        env=environment,
    )
    return ended.stdout.splitlines(), ended.returncode


@pytest.mark.parametrize(
    ("said", "second"),
    [
        ('raise RunInvalid("these numbers", remedy="run again")', "error: these numbers"),
        ('raise click.UsageError("no such thing")', "error: no such thing"),
        ("raise KeyboardInterrupt", "interrupted"),
        ('click.echo("warning: careful", err=True)', "warning: careful"),
        ("1 / 0", "Traceback (most recent call last):"),
    ],
)
def test_an_error_stands_after_what_was_printed_before_it(said: str, second: str) -> None:
    printed, _ = together(ERROR_AFTER_A_TABLE.format(said=said))
    lines = [line for line in printed if line]
    assert lines[0] == "the table"
    assert lines[1] == second


def test_a_dry_run_prints_its_plan_before_its_warnings(tmp_path: Path) -> None:
    file = tmp_path / "trial.toml"
    file.write_text(
        'schema_version = 1\n[world]\nkind = "fake"\nvolume = "gp3"\n[workload]\nduration = "5s"\nclients = 2\n'
    )
    code = f"""
import sys
from pgdyno.cli import main
sys.argv = ["pgdyno", "run", {str(file)!r}, "--dry-run"]
main.main()
"""
    lines, code_of = together(code)
    assert code_of == 0, lines
    warned = [place for place, line in enumerate(lines) if line.startswith("warning: ")]
    assert lines[0].startswith("arm 1: ")
    assert all(place > max(at for at, line in enumerate(lines) if line.startswith("about ")) for place in warned)


def test_an_error_is_said_where_standard_output_is_full() -> None:
    code = ERROR_AFTER_A_TABLE.format(said='raise RunInvalid("these numbers", remedy="run again")')
    with Path("/dev/full").open("wb") as full:
        ended = subprocess.run(
            [sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False
        )
    assert "error: these numbers" in ended.stderr
    assert "Traceback" not in ended.stderr
