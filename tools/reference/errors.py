"""``errors.md``: the tree of errors and the exit codes."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import pgdyno
from pgdyno.base.errors import EXIT_CODES, PgdynoError
from tools.reference import markdown as md

INTRODUCTION = """
An error is one sentence on standard error, `error: ...`, followed by `remedy: ...`, which says what to do. An error that a
program may want to recognize has a code, `error[load.header.ambiguous]: ...`, which stays the same when the sentence changes;
in Python it is `error.code`, and `error.data` has its figures and names. A bug keeps its traceback and says so.
"""


def page() -> str:
    """The text of the page."""
    _import_everything()
    codes = [[str(code), meaning] for code, meaning in EXIT_CODES.items()]
    tree = _tree(PgdynoError, "", "")
    width = max(len(drawn) for drawn, _ in tree)
    drawn = "\n".join(f"{name.ljust(width)}  exit {error.default_exit_code}" for name, error in tree)
    rows = [[md.code(error.__name__), str(error.default_exit_code), _meaning(error)] for _, error in tree]
    return md.page(
        "Errors and exit codes",
        "`python/pgdyno/base/errors.py`",
        INTRODUCTION,
        "## Exit codes",
        md.table(["code", "meaning"], codes),
        "## The tree",
        f"```text\n{drawn}\n```",
        md.table(["error", "exit code", "meaning"], rows),
    )


def _import_everything() -> None:
    """Errors may be defined beside what raises them."""
    for module in pkgutil.walk_packages(pgdyno.__path__, "pgdyno."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)


def _tree(error: type[PgdynoError], before: str, below: str) -> list[tuple[str, type[PgdynoError]]]:
    """An error and what descends from it, drawn; ``below`` is what stands before its own descendants."""
    children = sorted(error.__subclasses__(), key=lambda child: (child.__module__, inspect.getsourcelines(child)[1]))
    drawn = [(before + error.__name__, error)]
    for number, child in enumerate(children, 1):
        branch, trunk = ("└─ ", "   ") if number == len(children) else ("├─ ", "│  ")
        drawn += _tree(child, below + branch, below + trunk)
    return drawn


def _meaning(error: type[PgdynoError]) -> str:
    first = inspect.cleandoc(error.__doc__ or "").split("\n\n")[0]
    return md.literals(first)
