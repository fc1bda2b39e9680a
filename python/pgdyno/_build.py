"""The identity of the engine's sources, computed the same way here and in ``crates/engine/build.rs``.

In a source tree the expected hash is computed from the files, so that an engine older than its sources is noticed.
In an installed wheel it is read from ``_build_hash.txt``, which the build backend (``tools/build_backend.py``) writes.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
HASH_FILE = PACKAGE / "_build_hash.txt"
FILES = PACKAGE / "_files"
"""What an installed package has of the root of a clone: the folders below."""
DATA_FOLDERS = ("experiments", "schema", "dashboards", "catalog/published")

_SKIPPED_FOLDERS = {"tests", "benches", "examples", "target", "published"}
"""``catalog/published`` is read by Python alone: a figure of a document does not make another engine."""
_SKIPPED_FILES = {"clippy.toml", "rustfmt.toml"}


def source_root() -> Path | None:
    """The source tree this package lies in, or ``None`` when it was installed from a wheel."""
    root = PACKAGE.parent.parent
    return root if (root / "crates" / "engine").is_dir() and (root / "Cargo.lock").is_file() else None


def source_files(root: Path) -> list[str]:
    """Names (with ``/``) of the files that can change the engine, sorted by their bytes."""
    texts = [name for name in ("Cargo.lock", "Cargo.toml") if (root / name).is_file()]
    for top in ("crates", "catalog"):
        for folder, folders, files in os.walk(root / top):
            folders[:] = [name for name in folders if name not in _SKIPPED_FOLDERS and not name.startswith(".")]
            relative = os.path.relpath(folder, root).replace(os.sep, "/")
            texts += [f"{relative}/{name}" for name in files if name not in _SKIPPED_FILES and not name.startswith(".")]
    return sorted(texts, key=os.fsencode)


def hash_sources(root: Path) -> str:
    """SHA-256 over name, length and content of every source file; the first 16 hexadecimal digits."""
    digest = hashlib.sha256()
    for name in source_files(root):
        content = (root / name).read_bytes()
        digest.update(os.fsencode(name) + b"\0" + len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()[:16]


def expected_build_hash() -> str | None:
    """The hash an engine for this package has; ``None`` when the package does not know it."""
    root = source_root()
    if root is not None:
        return hash_sources(root)
    if HASH_FILE.is_file():
        return HASH_FILE.read_text(encoding="ascii").strip()
    return None
