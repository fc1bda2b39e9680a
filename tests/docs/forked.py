"""Commands of the documents, forked from one process that has imported all of pgdyno: an import takes half a second of CPU each time.

A command has the arguments, the folder, the environment and the descriptors of whoever asks (:mod:`tests.docs.ask`), and a
session of its own. It is killed when whoever asked is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import importlib
import marshal
import os
import selectors
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

from pgdyno.base import engine
from pgdyno.cli.main import COMMANDS, MODULES
from pgdyno.machine.waiting import wait_until
from tests.docs import small
from tests.docs.documents import ROOT

ASK = ROOT / "tests" / "docs" / "ask.py"
HEAVY = (
    "pgdyno.analysis.compare", "pgdyno.advise.diagnose.diagnosis", "pgdyno.advise.diagnose.watch", "pgdyno.flow.run", "pgdyno.loader.flow",
    "pgdyno.report", "pgdyno.report.page", "pgdyno.published.jobs", "pgdyno.world.emulated", "pgdyno.world.fake",
)  # fmt: skip
"""What commands import when they run."""
START_S = 60.0


@contextlib.contextmanager
def forking(folder: Path) -> Iterator[str]:
    """Run the process in a ``with`` block; gives the shell's words that stand for ``pgdyno``."""
    place = folder / "commands"
    environment = os.environ | {"PYTHONPATH": f"{ROOT}:{ROOT / 'python'}"}
    server = subprocess.Popen([sys.executable, "-m", "tests.docs.forked", str(place)], env=environment, cwd=ROOT)
    try:
        assert wait_until(lambda: place.exists() or server.poll() is not None, START_S) and server.poll() is None
        yield shlex.join([sys.executable, "-I", "-S", str(ASK), str(place)])
    finally:
        server.kill()
        server.wait()


def serve(place: str) -> NoReturn:
    """Fork a command for each that asks."""
    for name in (*(f"pgdyno.cli.{MODULES.get(name, name)}" for name in COMMANDS), *HEAVY):
        importlib.import_module(name)
    engine.checked()  # each would compute again what the engine's sources come to
    gc.freeze()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{place}.new")
    listener.listen(16)
    selector = selectors.DefaultSelector()
    selector.register(listener, selectors.EVENT_READ)
    Path(f"{place}.new").rename(place)  # now it listens
    while True:
        done: set[int] = set()
        for key, _ in selector.select():
            if key.fileobj is listener:
                _begin(listener.accept()[0], selector)
            elif key.data[0] not in done:  # its end and that of whoever asked may be seen at once
                done.add(key.data[0])
                _end(key, selector)


def _begin(connection: socket.socket, selector: selectors.BaseSelector) -> None:
    size, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
    result, total = b"", struct.unpack("<Q", size)[0]
    while len(result) < total:
        part = connection.recv(total - len(result))
        assert part, "whoever asked has gone before it had asked"
        result += part
    arguments, folder, environment = marshal.loads(result)
    pid = os.fork()
    if pid == 0:
        _run(arguments, folder, environment, descriptors)
    for descriptor in descriptors:
        os.close(descriptor)
    ended = os.pidfd_open(pid)
    # Each is found from the other: the command ends, or whoever asked has gone.
    selector.register(ended, selectors.EVENT_READ, (pid, ended, connection))
    selector.register(connection, selectors.EVENT_READ, (pid, ended, connection))


def _end(key: selectors.SelectorKey, selector: selectors.BaseSelector) -> None:
    pid, ended, connection = key.data
    if key.fileobj is connection:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        connection.send(struct.pack("<i", os.waitstatus_to_exitcode(status)))
    selector.unregister(ended)
    selector.unregister(connection)
    os.close(ended)
    connection.close()


def _run(arguments: list[str], folder: str, environment: dict[str, str], descriptors: list[int]) -> NoReturn:
    """The command, in the forked process."""
    os.setsid()
    for descriptor, given in enumerate(descriptors):
        os.dup2(given, descriptor)
        os.close(given)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None
    sys.argv[1:] = arguments
    sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)  # noqa: SIM115 (the process's own, to its end)
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="backslashreplace")  # noqa: SIM115 (as above)
    code = 1
    try:
        code = small.main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 (what Python prints at the end of a program)
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError):
            atexit._run_exitfuncs()
            sys.stdout.flush()
        os._exit(code)


if __name__ == "__main__":
    serve(sys.argv[1])
