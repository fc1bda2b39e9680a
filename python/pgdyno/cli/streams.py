"""Standard output and standard error of a command, whatever the world has made of them: full, or closed.

A command writes to them as always. What standard output cannot take becomes an :class:`OutputError`, wherever it happens; what
standard error cannot take is dropped, since there is nowhere left to say so. A reader that has gone is left to
:mod:`pgdyno.cli.main`.

A terminal acts on control characters, and names come from files, servers and databases: none is written but a tab and the end of
a line. What pgdyno draws itself (colours, a bar) goes through :func:`drawn`, and rows of CSV into a file through :func:`exact`.

Both are Python's own streams below: a write in Python could be interrupted by a signal after the kernel took it, and would
be repeated.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import os
import re
import sys
import threading
from collections.abc import Iterator
from typing import IO, Any, TextIO, cast

from ..base.errors import OutputError
from ..base.text import printable

_REPLACING = "pgdyno.replacing"
"""How what the encoding of standard output lacks is written."""
_OWN = re.compile(r"(\x1b\[(?:[0-9;]*m|\?25[lh]|[0-9]*A|2K)|\r)")
"""What pgdyno draws with: colours, and the lines of a bar that are drawn again."""


class _Stream(io.TextIOWrapper):
    _silent = False
    """Drops what is written from now on."""

    def write(self, text: str, /) -> int:
        self.write_exactly(printable(text))
        return len(text)

    def write_exactly(self, text: str, /) -> int:
        """Write text whose control characters are meant."""
        if not self._silent:
            with self._guarded():
                return super().write(text)
        return len(text)

    def flush(self) -> None:
        if not self._silent:
            with self._guarded():
                super().flush()

    @contextlib.contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self._silence()
            self._lost(error)

    def _silence(self) -> None:
        """What is buffered below would fail again at the end: it goes nowhere."""
        self._silent = True
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)

    def _lost(self, error: OSError) -> None:
        """Nothing, of standard error."""


class _Door:
    """A stream that writes in another way."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _LinePainter(_Door):
    def write(self, text: str, /) -> int:
        pieces = _OWN.split(text)
        pieces[::2] = map(printable, pieces[::2])
        self._stream.write_exactly("".join(pieces))
        return len(text)


class _Exact(_Door):
    def write(self, text: str, /) -> int:
        return self._stream.write_exactly(text)


def drawn(stream: TextIO) -> IO[str]:
    """The stream for what pgdyno draws itself; names in it must be :func:`~pgdyno.base.text.printable`."""
    return cast("IO[str]", _LinePainter(stream)) if isinstance(stream, _Stream) else stream


def exact(stream: TextIO) -> IO[str]:
    """The stream for data: as they are, unless a terminal would act on them."""
    return cast("IO[str]", _Exact(stream)) if isinstance(stream, _Stream) and not stream.isatty() else stream


class _Output(_Stream):
    unsaid: OutputError | None = None
    """Why it could not be written, where that could not be raised: the next flush does."""

    def flush(self) -> None:
        error, self.unsaid = self.unsaid, None
        if error is not None:
            raise error
        super().flush()

    def _lost(self, error: OSError) -> None:
        raise OutputError(
            f"standard output cannot be written: {error.strerror or error}",
            remedy="free some space, or redirect the output; what the command had done by then remains",
        ) from error


class _Errors(_Stream):
    """Standard error. What was printed before goes out first, so that both stand in a log in the order in which they were written."""

    def write_exactly(self, text: str, /) -> int:
        if threading.current_thread() is threading.main_thread():
            _flush_output()
        return super().write_exactly(text)


def _flush_output() -> None:
    """Flush standard output where an error must not end what is being written: it is met again when the command ends."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OutputError as error:
        if isinstance(sys.stdout, _Output):
            sys.stdout.unsaid = error


def install() -> None:
    """Put these streams into the place of Python's.

    A descriptor that was closed when the program began is taken, so that no opened file gets its number and the words of
    a child: standard output by one that refuses to be written, as a closed one does, standard error by one that drops all.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            opened = os.open(os.devnull, os.O_WRONLY if descriptor == 2 else os.O_RDONLY)  # the lowest that is free
            assert opened == descriptor, "the standard descriptors are taken in their order"
            os.set_inheritable(descriptor, True)
    codecs.register_error(_REPLACING, _replaced)
    out, err = _buffered(1), _buffered(2)
    sys.stdout = _Output(out, _encoding(sys.stdout), _REPLACING, line_buffering=out.isatty())
    sys.stderr = _Errors(err, _encoding(sys.stderr), "backslashreplace", line_buffering=True)


def _buffered(descriptor: int) -> io.BufferedWriter:
    return io.BufferedWriter(io.FileIO(descriptor, "w", closefd=False))


def _encoding(before: TextIO | None) -> str:
    return "utf-8" if before is None else before.encoding


def _replaced(error: UnicodeError) -> tuple[bytes, int]:
    """Bytes of a file's name as they are; ``?`` for what the terminal's encoding lacks."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return b"".join(os.fsencode(item) if "\udc80" <= item <= "\udcff" else b"?" for item in text), error.end
