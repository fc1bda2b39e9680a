"""What other tools check for `make lint` would be found: each is shown a tree that breaks the rule.

A contract that a misspelt name has emptied, or a clippy.toml that no crate reads, looks the same as a clean tree.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

needs_cargo = pytest.mark.skipif(shutil.which("cargo-clippy") is None, reason="needs cargo clippy")


def lint_imports(root: Path) -> subprocess.CompletedProcess[str]:
    """import-linter with the project's own contracts on another tree."""
    program = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", program, "--no-cache", "--config", "pyproject.toml"],
        cwd=root,
        env=os.environ
        | {"PYTHONPATH": str(root / "python"), "COLUMNS": "300"},  # a wide terminal: names of contracts on one line
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def tree(tmp_path: Path, repository: Path) -> Path:
    """A copy of the Python package and of its contracts."""
    shutil.copytree(repository / "python", tmp_path / "python", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(repository / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_tree_keeps_the_contracts(tree: Path) -> None:
    done = lint_imports(tree)
    assert done.returncode == 0, done.stdout


AGAINST = {
    "pgdyno.analysis.statistics": ("pgdyno.machine.paths", "analysis and report touch no machine"),
    "pgdyno.machine.paths": ("pgdyno.server.user", "Layers"),
    "pgdyno.base.errors": ("pgdyno.results", "Layers"),
}
"""A module -> what it may not import, and the contract that says so."""


def test_imports_against_the_direction_are_found(tree: Path) -> None:
    """All at once: the graph of a tree takes seconds, and each line of what is said is of one of them."""
    for importer, (imported, _) in AGAINST.items():
        path = tree / "python" / f"{importer.replace('.', '/')}.py"
        path.write_text(
            f"{path.read_text()}\n\ndef _wrong() -> None:\n    import {imported}  # noqa: F401 (for this test)\n"
        )
    done = lint_imports(tree)
    assert done.returncode != 0
    for importer, (imported, contract) in AGAINST.items():
        assert f"{importer} -> {imported}" in done.stdout, done.stdout
        assert any(contract in line and "BROKEN" in line for line in done.stdout.splitlines()), done.stdout


def test_a_new_package_without_a_layer_is_found(tree: Path) -> None:
    package = tree / "python" / "pgdyno" / "unheard"
    package.mkdir()
    (package / "__init__.py").write_text("")
    done = lint_imports(tree)
    assert done.returncode != 0
    assert "unheard" in done.stdout


def clippy(crate: Path) -> subprocess.CompletedProcess[str]:
    """Run clippy as `make lint` does, on one crate without dependencies."""
    arguments = ["--quiet", "--offline", "--", "-D", "warnings", "-D", "clippy::too_many_lines"]
    environment = os.environ | {"CARGO_TARGET_DIR": str(crate / "target")}
    return subprocess.run(
        ["cargo", "clippy", *arguments], cwd=crate, env=environment, capture_output=True, text=True, check=False
    )


def crate_of(folder: Path, source: str, clippy_toml: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text('[package]\nname = "bad"\nversion = "0.0.0"\nedition = "2024"\n[workspace]\n')
    (folder / "src" / "lib.rs").write_text(source)
    shutil.copy(clippy_toml, folder)
    return folder


BANNED = {
    "clock": ("pub fn f() -> std::time::Instant { std::time::Instant::now() }", "time is an argument"),
    "wait": ("pub fn f() { std::thread::sleep(std::time::Duration::ZERO) }", "this crate never waits"),
    "thread": ("pub fn f() { std::thread::spawn(|| ()); }", "one caller drives this crate"),
    "file": ('pub fn f() -> bool { std::fs::read("x").is_ok() }', "no files here"),
    "socket": ("pub struct S(pub std::net::TcpStream);", "no sockets here"),
    "order": ("pub struct S(pub std::collections::HashMap<u8, u8>);", "its order is random"),
    "rounding": ("pub fn f(x: f64) -> f64 { x.ln() }", "differs between machines"),
    "output": ('pub fn f() { println!("x"); }', "this crate says nothing"),
}


@needs_cargo
def test_the_bans_of_the_clock_free_crates_are_found_with_their_reasons(tmp_path: Path, repository: Path) -> None:
    source = "".join(f"pub mod {name} {{ {code} }}\n" for name, (code, _) in BANNED.items())
    done = clippy(crate_of(tmp_path / "bad", source, repository / "crates/volume/clippy.toml"))
    assert done.returncode != 0
    missed = [name for name, (_, reason) in BANNED.items() if reason not in done.stderr]
    assert missed == [], done.stderr


LEAKING = """
import os, pathlib, subprocess
from tests import leaks

def test_process():
    subprocess.Popen(["sleep", "600"])

def test_clean():
    pass
"""


def test_a_test_that_leaves_something_fails(tmp_path: Path, repository: Path) -> None:
    (tmp_path / "test_leaking.py").write_text(LEAKING)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "--rootdir", "."]
    done = subprocess.run(
        [*command, "-c", "/dev/null", str(tmp_path / "test_leaking.py")],
        cwd=repository,
        env=environment | {"PYTHONPATH": f"{repository}:{repository / 'python'}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "ERROR" in done.stdout and "1 error" in done.stdout, done.stdout + done.stderr
    assert "the test left on the machine (now removed):" in done.stdout
    assert "(sleep): sleep 600" in done.stdout
