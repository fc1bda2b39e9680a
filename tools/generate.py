"""Writes every generated file, or with ``--check`` says which ones are not what their generator makes."""

from __future__ import annotations

import subprocess
import sys

GENERATORS = (
    "tools.schemas",
    "pgdyno.advise.diagnose.schema",
    "pgdyno.experiment.schema",
    "tools.reference",
)
"""Modules that write their file, and with ``--check`` compare it."""


def main(arguments: list[str]) -> int:
    """Run every generator; exit code 1 when one fails."""
    results = [subprocess.run([sys.executable, "-m", module, *arguments], check=False) for module in GENERATORS]
    return 1 if any(result.returncode for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
