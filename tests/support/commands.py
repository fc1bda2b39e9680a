"""The command under test, in this process: for what it prints and refuses. How a process of it ends is tested in one."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import NamedTuple
from unittest import mock

from pgdyno.base.errors import PgdynoError
from pgdyno.cli import main


class Ended(NamedTuple):
    """What became of a command line."""

    code: int
    out: str
    err: str
    error: PgdynoError | None
    """What was printed as an error: tests look at its code and data, which stay when a sentence changes."""


def pgdyno(*arguments: str | Path, code: int | None = None) -> Ended:
    """Run one command line; with ``code`` it must end with that."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    errors: list[PgdynoError] = []
    print_error = main.print_error

    def kept(error: PgdynoError) -> int:
        errors.append(error)
        return print_error(error)

    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(main, "print_error", kept),
    ):
        ended = main.run([str(argument) for argument in arguments])
    texts = []
    for stream in (out, err):
        stream.seek(0)
        texts.append(stream.read())
    pgdyno = Ended(ended, *texts, errors[-1] if errors else None)
    assert code is None or pgdyno.code == code, pgdyno.err
    return pgdyno
