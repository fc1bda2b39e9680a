"""Builds the engine, packs it with the package into ``dist/``, and examines the file."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from pgdyno import _build
from tools.wheel import ROOT, engine, examine, licences, pack

DIST = ROOT / "dist"


def main() -> int:
    """Write the wheel and the engine's debug information; exit code 1 when the examination finds something."""
    if shutil.which("readelf") is None or shutil.which("objcopy") is None:
        print("wheel: readelf or objcopy is missing: install binutils", file=sys.stderr)
        return 3
    DIST.mkdir(exist_ok=True)
    try:
        built = engine.build(ROOT)
        stripped, debug = engine.strip(built, DIST)
        wheel = pack.pack(ROOT, stripped, DIST, licences.texts(ROOT))
        stripped.unlink()
    except subprocess.CalledProcessError as error:
        print(f"wheel: {error.cmd[0]} failed: the lines above say why", file=sys.stderr)
        return 1
    result = examine.examine(wheel)
    print(f"{wheel.relative_to(ROOT)}\n{debug.relative_to(ROOT)}", *result.lines(), sep="\n")
    wrong = result.problems(_build.hash_sources(ROOT), licences.crates(ROOT))
    for problem in wrong:
        print(f"wheel: {problem}", file=sys.stderr)
    if wrong:
        refused = Path(f"{wheel}.refused")
        wheel.rename(refused)  # so that nobody takes it for one that passed
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
