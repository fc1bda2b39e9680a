"""The one way from Python to Rust: find ``pgdyno-engine``, hand it a JSON document, read JSON lines.

The engine reports an error that is the user's as ``{"error": {"message", "remedy", "code", "data"}}`` on standard error and exit
code 2; that becomes an :class:`InputError`, or a :class:`HostError` when the machine is at fault. Any other failure is an
:class:`EngineError` with what it said.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import select
import shlex
import subprocess
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Self

from .. import _build
from . import installation
from .errors import EngineError, EngineMissing, HostError, InputError, PgdynoError

BINARY = "pgdyno-engine"
TIMEOUT_S = 60.0
_PIPE = subprocess.PIPE
_TAIL_BYTES = 2000
_PIPE_BYTES = 4096
"""Every pipe holds a page, also of a user who has many (pipe(7))."""
_READ_BYTES = 1 << 16
_END_S = 5.0
"""An engine whose input has ended ends in milliseconds."""
_CRASH = re.compile(r"^(?:thread .* panicked at .*\n.*|memory allocation of .*)", re.MULTILINE)
"""How Rust begins to say why it aborts (std::panicking, std::alloc)."""


def find() -> Path:
    """The engine's binary: ``$PGDYNO_ENGINE``, else where installers put programs. :class:`EngineMissing` when absent."""
    named = os.environ.get("PGDYNO_ENGINE")
    places = [Path(named)] if named else [folder / BINARY for folder in installation.program_folders()]
    for path in places:
        if path.is_file() and os.access(path, os.X_OK):
            return path
    if named:
        raise EngineMissing(
            f"the engine is missing: $PGDYNO_ENGINE names {named}, and there is no such program",
            remedy="unset PGDYNO_ENGINE, or let it name an executable file",
        )
    looked = ", ".join(str(place) for place in places)
    # An archive that was unpacked without its modes, as Python's zipfile does.
    unusable = next((path for path in places if path.is_file()), None)
    again = installation.how_to_install_again()
    raise EngineMissing(
        f"the engine is missing: none of these is a program: {looked}",
        remedy=f"run `chmod +x {shlex.quote(str(unusable))}`, or {again}" if unusable else again,
    )


@dataclass(frozen=True)
class EngineFacts:
    """Which engine is used. ``expected_build_hash`` is ``None`` when the package does not know it."""

    path: Path
    version: str
    build_hash: str
    expected_build_hash: str | None

    @property
    def matches(self) -> bool:
        """Whether the engine was built from the sources this package belongs to."""
        return self.expected_build_hash is None or self.build_hash == self.expected_build_hash


@functools.cache
def _facts_of(path: Path) -> EngineFacts:
    answer = _call(path, ["version"], None, TIMEOUT_S)
    return EngineFacts(path, str(answer["version"]), str(answer["build_hash"]), _build.expected_build_hash())


def facts() -> EngineFacts:
    """Version and build hash of the engine in use; asked once in a process."""
    return _facts_of(find())


def checked() -> Path:
    """The engine's path, after comparing build hashes.

    An engine that was named by ``$PGDYNO_ENGINE`` is the caller's choice and is used as it is (``pgdyno doctor``
    tells when it does not match).
    """
    path = find()
    if not os.environ.get("PGDYNO_ENGINE"):
        known = _facts_of(path)
        if not known.matches:
            raise EngineMissing(
                f"{path} was built from other sources ({known.build_hash}) than this package"
                f" ({known.expected_build_hash})",
                remedy=installation.how_to_install_again(),
            )
    return path


def child(argv: Sequence[str | Path], *, outlives: bool = False) -> list[str]:
    """``argv`` as a command line that starts with no signal blocked or ignored, and is killed when this process ends.

    An ignored SIGHUP stays ignored, for ``nohup``. With ``outlives`` the program is not tied to this process. It keeps the
    process id that it was started with.
    """
    tie = [] if outlives else ["--parent", str(os.getpid())]
    return [str(checked()), "exec", *tie, "--", *map(str, argv)]


def run_json(
    args: Sequence[str], stdin: Mapping[str, Any] | None = None, *, timeout_s: float = TIMEOUT_S
) -> dict[str, Any]:
    """Run the engine to its end and return the one JSON document it printed."""
    return _call(checked(), args, stdin, timeout_s)


@dataclass
class EngineProcess:
    """An engine that keeps running. ``ready`` holds the facts of its first line."""

    process: subprocess.Popen[bytes]
    args: Sequence[str]
    log: Path
    """Where its standard error goes."""
    log_begin: int
    """Size of that file before."""
    timeout_s: float
    began_s: float = field(default_factory=time.monotonic)
    ready: dict[str, Any] = field(default_factory=dict)

    def wait_ready(self) -> Self:
        """Wait for its first line. Where that is another one, or does not come in time, the process is ended and the error raised."""
        try:
            assert self.process.stdout is not None
            deadline = self.began_s + self.timeout_s
            line = _first_line(self.process.stdout, deadline)
            answer = _parse(line) if line else {}
            if "ready" not in answer:
                what = f"was not ready within {self.timeout_s:g} s"
                if not line and time.monotonic() < deadline:
                    what = f"ended with {_ending(self.process.wait(self.timeout_s))} before it was ready"
                raise _error_of(answer) or self._failure(f"the engine `{' '.join(self.args)}` {what}")
        except BaseException:
            self.process.kill()
            self.process.wait()
            raise
        self.ready = dict(answer["ready"])
        return self

    def close_stdin(self) -> None:
        """End its standard input: a probe takes this as the order to stop."""
        if self.process.stdin is not None and not self.process.stdin.closed:
            self.process.stdin.close()

    def failure(self) -> PgdynoError:
        """What went wrong with an engine that has ended before its time."""
        return self._failure(f"the engine ended with {_ending(self.process.returncode)}")

    def _failure(self, what: str) -> PgdynoError:
        data = self.log.read_bytes()[self.log_begin :]
        unsaid = EngineError(f"{what}: {_tail(data) or 'it said nothing'}", remedy=f"read {self.log}")
        return _error_from_text(data) or unsaid


def spawn(
    args: Sequence[str],
    stdin: Mapping[str, Any],
    *,
    log: Path,
    new_session: bool = False,
    keep_stdin: bool = False,
    timeout_s: float = TIMEOUT_S,
    prefix: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    wait: bool = True,
) -> EngineProcess:
    """Start an engine that goes on after its first line, and wait for that line unless ``wait`` is false (:meth:`EngineProcess.wait_ready`).

    ``stdin`` is sent as one line; the pipe stays open when ``keep_stdin``. Standard error goes to ``log``
    (appended). ``new_session`` lets it outlive this process. ``prefix`` is a command that
    runs it (``taskset -c 1``), ``env`` its environment (default: this process's). The first line is ``{"ready": {...}}``; an
    error in its place, or as the last words, is raised; no line within ``timeout_s`` ends the process and raises.
    """
    with log.open("ab") as log_file:
        begin = log_file.tell()
        command: list[str | Path] = [*prefix, checked(), *args]
        process = subprocess.Popen(
            command, stdin=_PIPE, stdout=_PIPE, stderr=log_file, start_new_session=new_session, env=env
        )
    spawned = attend(process, args, stdin, log=log, begin=begin, keep_stdin=keep_stdin, timeout_s=timeout_s)
    return spawned.wait_ready() if wait else spawned


def attend(
    process: subprocess.Popen[bytes],
    args: Sequence[str],
    stdin: Mapping[str, Any],
    *,
    log: Path,
    begin: int = 0,
    keep_stdin: bool = False,
    timeout_s: float = TIMEOUT_S,
) -> EngineProcess:
    """Give a process that was started by other means its document, as :func:`spawn` without ``wait``; ``begin`` is the size of ``log`` before."""
    assert process.stdin is not None
    try:
        _send(process.stdin, stdin, keep_open=keep_stdin)
    except BaseException:
        process.kill()
        process.wait()
        raise
    return EngineProcess(process, args, log, begin, timeout_s)


def lines(
    args: Sequence[str],
    stdin: Mapping[str, Any],
    *,
    env: Mapping[str, str] | None = None,
    on_start: Callable[[int], None] | None = None,
    pass_fds: Sequence[int] = (),
) -> Generator[dict[str, Any]]:
    """Run the engine to its end and yield each of its lines when it comes.

    ``env`` is its environment (default: this process's), ``on_start`` gets its process id, ``pass_fds`` are descriptors
    that it has too, by the same numbers. A caller that stops early closes
    the iterator (:func:`contextlib.closing`): the engine is then told to stop (SIGTERM), and waited for while it tidies
    up. Errors are raised as everywhere here.
    """
    import tempfile

    # A pipe that is not read would block the engine once it is full.
    with tempfile.TemporaryFile() as temporary_file:
        process = subprocess.Popen(
            [checked(), *args], stdin=_PIPE, stdout=_PIPE, stderr=temporary_file, env=env, pass_fds=tuple(pass_fds)
        )
        with process:
            try:
                assert process.stdin is not None and process.stdout is not None
                if on_start is not None:
                    on_start(process.pid)
                _send(process.stdin, stdin, keep_open=False)
                for line in process.stdout:
                    yield _parse(line)
                code = process.wait()
            except BaseException:
                _end(process)
                raise
        if code != 0:
            temporary_file.seek(0)
            raise _failed(args, code, temporary_file.read())


class Conversation:
    """An engine that answers each JSON line with one JSON line until it is closed. It starts with the first question.

    It ends with its standard input, so nothing is left of it however this process ends.
    """

    def __init__(self, args: Sequence[str]) -> None:
        self._args = tuple(args)
        self._process: subprocess.Popen[bytes] | None = None
        self._read = b""

    def ask(self, questions: Iterable[Mapping[str, Any]]) -> Generator[Any]:
        """The answers, in the order of the questions. In place of an answer that is refused is its :class:`InputError`.

        No more is sent at a time than any pipe holds, so that neither side waits for the other.
        """
        for batch in _batches(json.dumps(question).encode() + b"\n" for question in questions):
            process = self._started()
            assert process.stdin is not None
            try:
                with contextlib.suppress(BrokenPipeError):  # it ended; the missing answer says why
                    process.stdin.write(b"".join(batch))
                    process.stdin.flush()
                answers = [self._answer(process) for _ in batch]
            except BaseException:
                self.close()  # what it still says would answer other questions
                raise
            for answer in answers:
                yield _error_of(answer) or answer.get("answer")

    def close(self) -> None:
        """End it. It may be asked again, and is started again then."""
        process, self._process = self._process, None
        self._read = b""
        if process is not None:
            assert process.stdin is not None and process.stdout is not None and process.stderr is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()
            process.stdout.close()
            process.stderr.close()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            # Its last words fit into a pipe; before them it says nothing there.
            self._process = subprocess.Popen([checked(), *self._args], stdin=_PIPE, stdout=_PIPE, stderr=_PIPE)
        return self._process

    def _answer(self, process: subprocess.Popen[bytes]) -> dict[str, Any]:
        assert process.stdout is not None
        pipe, deadline = process.stdout.fileno(), time.monotonic() + TIMEOUT_S
        while b"\n" not in self._read:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise EngineError(
                    f"the engine `{' '.join(self._args)}` gave no answer within {TIMEOUT_S:g} s",
                    remedy="run `pgdyno doctor`",
                )
            more = os.read(pipe, _READ_BYTES)
            if not more:
                assert process.stderr is not None
                raise _failed(self._args, process.wait(_END_S), process.stderr.read())
            self._read += more
        line, _, self._read = self._read.partition(b"\n")
        return _parse(line)


def _batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The lines in groups that a pipe takes at once; a longer line is a group of its own."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and size + len(line) > _PIPE_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch


def _end(process: subprocess.Popen[bytes]) -> None:
    """Tell a process to stop and wait for it; one that does not is killed."""
    if process.stdout is not None:
        process.stdout.close()  # it must not wait for a reader that is gone
    process.terminate()
    try:
        process.wait(TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    except BaseException:
        process.kill()
        raise


def _call(path: Path, args: Sequence[str], stdin: Mapping[str, Any] | None, timeout_s: float) -> dict[str, Any]:
    text = b"" if stdin is None else json.dumps(stdin).encode() + b"\n"
    try:
        done = subprocess.run([path, *args], input=text, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        raise EngineError(
            f"the engine `{' '.join(args)}` gave no answer within {timeout_s:g} s", remedy="run `pgdyno doctor`"
        ) from None
    if done.returncode == 0:
        return _parse(done.stdout)
    raise _failed(args, done.returncode, done.stderr)


def _failed(args: Sequence[str], code: int, data: bytes) -> PgdynoError:
    """The error of an engine that ended with a code other than 0."""
    return _error_from_text(data) or EngineError(
        f"the engine `{' '.join(args)}` ended with {_ending(code)}: {_tail(data) or 'it said nothing'}",
        remedy="this is a bug in pgdyno if `pgdyno doctor` finds nothing",
    )


def _send(pipe: IO[bytes], document: Mapping[str, Any], *, keep_open: bool) -> None:
    try:
        pipe.write(json.dumps(document).encode() + b"\n")
        pipe.flush()
        if not keep_open:
            pipe.close()
    except BrokenPipeError:
        # It ended before it read; what it said on the way out explains why. What is left in the buffer goes nowhere.
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


def _first_line(pipe: IO[bytes], deadline: float) -> bytes:
    """One line, byte by byte beneath Python's buffer so that later lines stay in the pipe; empty at the end."""
    line = b""
    while not line.endswith(b"\n"):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([pipe], [], [], left)[0]:
            return b""
        byte = os.read(pipe.fileno(), 1)
        if not byte:
            break
        line += byte
    return line


def _parse(text: bytes) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        raise EngineError(
            f"the engine's answer is not a JSON document: {_tail(text)!r}", remedy=installation.how_to_install_again()
        )
    return document


def _error_of(answer: Mapping[str, Any]) -> PgdynoError | None:
    error = answer.get("error")
    if not isinstance(error, dict) or "message" not in error:
        return None
    kind = HostError if error.get("of_host") else InputError
    code, data = str(error.get("code") or ""), error.get("data")
    return kind(str(error["message"]), remedy=str(error.get("remedy") or ""), code=code, data=data)


def _error_from_text(text: bytes) -> PgdynoError | None:
    """The error document among the last lines of standard error (a library may have printed before it)."""
    for line in reversed(text.splitlines()):
        try:
            document = json.loads(line)
        except ValueError:
            continue
        if isinstance(document, dict) and (error := _error_of(document)) is not None:
            return error
    return None


def _tail(text: bytes) -> str:
    """The end of what was said; of a crash the reason, which stands before the stack's trace."""
    decode = text.decode(errors="replace")
    if match := _CRASH.search(decode):
        return match[0].strip()[:_TAIL_BYTES]
    return decode[-_TAIL_BYTES:].strip()


def _ending(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit code {code}"
