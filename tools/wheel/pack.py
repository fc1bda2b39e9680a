"""A wheel from an engine and the package: what an installer puts where (binary distribution format, PEP 427)."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from pgdyno import __version__, _build
from tools.wheel import description, engine, man

THIRD_PARTY = "THIRD-PARTY.txt"
_WHEN = (1980, 1, 1, 0, 0, 0)
"""The time of every file, so that the same sources make the same wheel."""
_PROGRAM, _FILE = 0o100755, 0o100644


def pack(root: Path, binary: Path, folder: Path, licences: str) -> Path:
    """Write a wheel of the package in ``root`` with ``binary`` as its engine into ``folder``; returns the file."""
    tag = f"py3-none-{engine.platform_tag()}"
    wheel = folder / f"pgdyno-{__version__}-{tag}.whl"
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    about = f"pgdyno-{__version__}.dist-info"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content, mode in contents(root, binary, tag, licences):
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.writerow((name, f"sha256={digest}", len(content)))
            _write(archive, name, content, mode)
        rows.writerow((f"{about}/RECORD", "", ""))
        _write(archive, f"{about}/RECORD", record.getvalue().encode(), _FILE)
    return wheel


def contents(root: Path, binary: Path, tag: str, licences: str) -> Iterator[tuple[str, bytes, int]]:
    """Name, content and mode of every file but RECORD."""
    package = root / "python" / "pgdyno"
    for path in sorted(package.rglob("*")):
        relative = path.relative_to(package)
        if path.is_file() and not {"__pycache__", _build.FILES.name, _build.HASH_FILE.name} & set(relative.parts):
            yield f"pgdyno/{relative.as_posix()}", path.read_bytes(), _FILE
    yield f"pgdyno/{_build.HASH_FILE.name}", f"{_build.hash_sources(root)}\n".encode(), _FILE
    for path in sorted(path for name in _build.DATA_FOLDERS for path in (root / name).rglob("*") if path.is_file()):
        yield f"pgdyno/{_build.FILES.name}/{path.relative_to(root).as_posix()}", path.read_bytes(), _FILE
    data = f"pgdyno-{__version__}.data"
    yield f"{data}/scripts/pgdyno", (root / "data" / "scripts" / "pgdyno").read_bytes(), _PROGRAM
    yield f"{data}/scripts/{engine.NAME}", binary.read_bytes(), _PROGRAM
    for name, text in man.pages().items():
        yield f"{data}/data/share/man/man1/{name}", text.encode(), _FILE
    yield from _about(root, tag, licences)


def _about(root: Path, tag: str, licences: str) -> Iterator[tuple[str, bytes, int]]:
    """The folder about the distribution: maturin's, but for the tag and the licences of what the engine is linked with."""
    maturin = Path(sys.executable).with_name("maturin")
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(
            [maturin, "pep517", "write-dist-info", "--metadata-directory", folder, "--interpreter", sys.executable],
            cwd=root,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        [about] = Path(folder).glob("*.dist-info")
        for path in sorted(path for path in about.rglob("*") if path.is_file()):
            content = path.read_bytes()
            if path.name == "WHEEL":
                content = f"Wheel-Version: 1.0\nGenerator: maturin\nRoot-Is-Purelib: false\nTag: {tag}\n".encode()
            elif path.name == "METADATA":
                content = description.of_package(root, content.decode(), [f"License-File: {THIRD_PARTY}"]).encode()
            elif path.name == "RECORD":
                continue
            yield f"{about.name}/{path.relative_to(about).as_posix()}", content, _FILE
        yield f"{about.name}/licenses/{THIRD_PARTY}", licences.encode(), _FILE


def _write(archive: zipfile.ZipFile, name: str, content: bytes, mode: int) -> None:
    entry = zipfile.ZipInfo(name, _WHEN)
    entry.external_attr = mode << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
