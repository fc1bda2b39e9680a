"""``make sdist``: the sources as git knows them, with a package page whose links are absolute."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.wheel import ROOT, description


def main() -> int:
    """Write ``dist/pgdyno-X.tar.gz``."""
    made = write(ROOT, ROOT / "dist")
    print(made.relative_to(ROOT))
    return 0


def write(root: Path, folder: Path) -> Path:
    """Write the source distribution into ``folder``; returns the file. :class:`subprocess.CalledProcessError`."""
    folder.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as raw:
        maturin = Path(sys.executable).with_name("maturin")
        subprocess.run([maturin, "pep517", "write-sdist", "--sdist-directory", raw], cwd=root, check=True)
        [made] = Path(raw).glob("*.tar.gz")
        return _rewritten(root, made, folder / made.name)


def _rewritten(root: Path, made: Path, goal: Path) -> Path:
    unfinished = goal.with_name(f".{goal.name}.{os.getpid()}")
    with (
        tarfile.open(made) as old,
        unfinished.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for entry in old:
            opened = old.extractfile(entry)
            content = opened.read() if opened is not None else b""
            if entry.name.endswith("/PKG-INFO"):
                content = description.of_package(root, content.decode(), []).encode()
                entry.size = len(content)
            if os.access(root / entry.name.partition("/")[2], os.X_OK):
                entry.mode |= 0o111  # maturin writes every file as one that cannot be executed
            new.addfile(entry, io.BytesIO(content) if entry.isfile() else None)
    unfinished.rename(goal)
    return goal


if __name__ == "__main__":
    sys.exit(main())
