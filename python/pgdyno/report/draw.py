"""Vega-Lite specifications become SVG and PNG, in a process of their own.

The drawing library can abort its process: a control character in a text is a panic in code that cannot unwind. Here that
costs one figure; the next one gets a new process. It takes a second to start, so the figures of a page share one: :func:`kept`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from typing import IO, Any

DEADLINE_S = 120.0
"""For one figure: the slowest take a second, and a busy machine may need many times that."""
REASON_CHARACTERS = 300
"""Of what the library said when it failed."""
_DONE, _FAILED = b"done", b"failed"


def svg(specification: dict[str, Any]) -> str:
    """A specification as an SVG document. :class:`~pgdyno.base.errors.PgdynoError` when it cannot be drawn."""
    return _drawn({"kind": "svg", "specification": specification}).decode()


def png(specification: dict[str, Any], scale: float) -> bytes:
    """A specification as a PNG, ``scale`` pixels for one of the specification's; errors as :func:`svg`."""
    return _drawn({"kind": "png", "specification": specification, "scale": scale})


@contextmanager
def kept() -> Iterator[None]:
    """Draw all figures of the block in one process, which the first of them starts."""
    if _current.get() is not None:
        yield
        return
    process = _Process()
    token = _current.set(process)
    try:
        yield
    finally:
        _current.reset(token)
        process.end()


def _drawn(request: dict[str, Any]) -> bytes:
    with kept():
        process = _current.get()
        assert process is not None
        return process.answer(_cleaned(request))


def _cleaned(part: Any) -> Any:
    """A part of a specification whose texts have no control characters."""
    from ..base.text import printable

    if isinstance(part, str):
        return printable(part)
    if isinstance(part, dict):
        return {key: _cleaned(value) for key, value in part.items()}
    return [_cleaned(value) for value in part] if isinstance(part, list | tuple) else part


class _Process:
    """Draws one figure after the other; one that has died is replaced for the next figure."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._complaints: IO[bytes] | None = None

    def answer(self, request: dict[str, Any]) -> bytes:
        from ..base.errors import PgdynoError

        process = self._process or self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        timer = threading.Timer(DEADLINE_S, process.kill)
        timer.start()
        try:
            with suppress(BrokenPipeError):  # it has died, as its empty answer says
                process.stdin.write(json.dumps(request).encode() + b"\n")
                process.stdin.flush()
            state, _, length = process.stdout.readline().partition(b" ")
            content = process.stdout.read(int(length)) if length else b""
        except BaseException:
            self.end()  # it may be in the middle of an answer
            raise
        finally:
            timer.cancel()
        if state == _DONE:
            return content
        reason = content.decode(errors="replace") if state == _FAILED else self._why_it_died()
        raise PgdynoError(
            f"a figure could not be drawn: {reason}",
            remedy="the other figures, and the same numbers as text, are there: `pgdyno report RESULT --format md`",
            code="report.figure.failed",
            data={"reason": reason},
        )

    def end(self) -> None:
        if self._process is None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdout.close()
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process = None
        assert self._complaints is not None
        self._complaints.close()

    def _start(self) -> subprocess.Popen[bytes]:
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
        )
        return self._process

    def _why_it_died(self) -> str:
        """The end of the process, and its last words."""
        from ..base.text import printable

        assert self._process is not None
        assert self._complaints is not None
        code = self._process.wait()
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").split("\n")
        panic = next((line for line in lines if "panicked" in line), lines[-1])
        self.end()
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        return f"the drawing library ended with {how}: {printable(panic)[:REASON_CHARACTERS]}".rstrip(": ")


_current: ContextVar[_Process | None] = ContextVar("drawing process", default=None)


def _serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Answer requests, a line each, until there are no more."""
    import vl_convert

    for line in source:
        request = json.loads(line)
        try:
            if request["kind"] == "svg":
                content = str(vl_convert.vegalite_to_svg(request["specification"])).encode()
            else:
                content = bytes(vl_convert.vegalite_to_png(request["specification"], scale=request["scale"]))
            state = _DONE
        except Exception as error:  # noqa: BLE001 - whatever the library raises costs this figure only
            state, content = _FAILED, str(error)[:REASON_CHARACTERS].encode()
        sink.write(b"%s %d\n%s" % (state, len(content), content))
        sink.flush()


if __name__ == "__main__":
    _serve(sys.stdin.buffer, sys.stdout.buffer)
