"""The engine for older systems, and its debug information in a file of its own."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from pgdyno import __version__
from tools.wheel import GLIBC

NAME = "pgdyno-engine"
TARGETS = {"x86_64": "x86_64-unknown-linux-gnu", "aarch64": "aarch64-unknown-linux-gnu"}


def platform_tag() -> str:
    """``manylinux_2_28_x86_64``."""
    return f"manylinux_{GLIBC[0]}_{GLIBC[1]}_{platform.machine()}"


def build(root: Path) -> Path:
    """Build the engine by maturin with zig's linker; returns it, with its symbols. :class:`subprocess.CalledProcessError`.

    maturin packs it as well and refuses symbols that are too new; that file is thrown away, as it holds the symbols, too.
    """
    target = TARGETS[platform.machine()]
    maturin = Path(sys.executable).with_name("maturin")
    path = f"{maturin.parent}:{os.environ['PATH']}"  # zig is looked for as `python3 -m ziglang`
    with tempfile.TemporaryDirectory() as thrown_away:
        subprocess.run(
            [
                maturin,
                "build",
                "--release",
                "--locked",
                "--zig",
                "--target",
                target,
                "--compatibility",
                platform_tag().removesuffix(f"_{platform.machine()}"),
                "--out",
                thrown_away,
            ],
            cwd=root,
            check=True,
            env=os.environ | {"PATH": path},
        )
    return target_folder(root) / target / "release" / NAME


def target_folder(root: Path) -> Path:
    """Where cargo builds: ``$CARGO_TARGET_DIR`` and the like are cargo's to read."""
    import json

    process = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--no-deps", "--locked"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    return Path(json.loads(process.stdout)["target_directory"])


def strip(engine: Path, folder: Path) -> tuple[Path, Path]:
    """The engine without symbols, below ``folder``, and the file that has them; debuggers find it by the link in the engine."""
    debug = folder / f"{NAME}-{__version__}-{platform.machine()}.debug"
    stripped = folder / NAME
    subprocess.run(["objcopy", "--only-keep-debug", engine, debug], check=True)
    subprocess.run(["objcopy", "--strip-all", f"--add-gnu-debuglink={debug}", engine, stripped], check=True)
    debug.chmod(0o644)
    return stripped, debug
