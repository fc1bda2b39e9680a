"""Installs older servers: ``python -m tools.older 12 15``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pgdyno.base.errors import PgdynoError
from tools.older.install import install, locked

ROOT = Path("/usr/local/lib/postgresql")
"""Where experiment files name them."""


def main(arguments: list[str]) -> int:
    """Install what is named; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tools.older", description=__doc__)
    parser.add_argument("major", nargs="+", type=int, help="major version, for example 12")
    parser.add_argument("--into", type=Path, default=ROOT, help=f"folder [{ROOT}]")
    args = parser.parse_args(arguments)
    try:
        for major in args.major:
            print(install(locked(major), args.into))
    except PgdynoError as error:
        print(f"{error.message}; {error.remedy}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
