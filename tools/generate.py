"""Writes every generated file that is in git, or with ``--check`` says which schemas are not what their generator makes."""

from __future__ import annotations

import subprocess
import sys

SCHEMAS = (
    "tools.schemas",
    "pgdyno.advise.diagnose.document",
    "pgdyno.experiment.schema",
)
"""Modules that write their JSON Schema, and with ``--check`` compare it: the schemas are the contract with other programs."""
GUIDE = ("tools.published",)
"""Writes the summary and the pictures of published comparisons; ``tests/published`` compares them."""


def main(arguments: list[str]) -> int:
    """Run every generator; exit code 1 when one fails."""
    modules = SCHEMAS if arguments else SCHEMAS + GUIDE
    results = [subprocess.run([sys.executable, "-m", module, *arguments], check=False) for module in modules]
    return 1 if any(result.returncode for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
