"""QEMU with the machine in it, and the line to the agent inside. Everything that waits has a deadline."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from pydantic import BaseModel

from pgdyno.base import engine
from pgdyno.base.errors import HostError
from pgdyno.machine.waiting import wait_until

if TYPE_CHECKING:
    from types import TracebackType

    from tools.machine.image import Image

MEMORY_MIB = 8192
"""Above what `pgdyno doctor` warns of. The host gives what is touched."""
CPUS = 2
BOOT_S = {"kvm": 60.0, "tcg": 600.0}
"""A kernel that this host's KVM cannot run hangs at its begin; emulated, on a busy host, it takes minutes."""
CONNECT_S = 30.0


class Answer(BaseModel):
    """What became of a command."""

    code: int | None
    """None where it did not end in time, and was killed."""
    stdout: str
    stderr: str
    seconds: float
    groups: dict[str, dict[str, Any]]
    """Of a watched command: by instance what its control group allowed and had."""
    killed: list[int]


@dataclass(frozen=True)
class Running:
    """QEMU with its first answer."""

    process: subprocess.Popen[bytes]
    agent: socket.socket
    accelerator: str
    facts: dict[str, str]
    boot_s: float


class Machine:
    """A machine that runs between ``with`` and its end; what it wrote to its disks is lost then."""

    def __init__(self, image: Image, scratch: Path, accelerators: tuple[str, ...] = ("kvm", "tcg")) -> None:
        self._image = image
        # The path of a socket has 107 bytes at most.
        self._scratch = Path(tempfile.mkdtemp(prefix="vm.", dir=scratch))
        self._accelerators = accelerators
        self._running: Running | None = None
        self._pending = b""
        self._asked = 0

    def __enter__(self) -> Self:
        try:
            results = []
            for accelerator in self._accelerators:
                if accelerator == "kvm" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
                    results.append("kvm: /dev/kvm cannot be opened")
                    continue
                why = self._boot(accelerator)
                if why is None:
                    return self
                results.append(f"{accelerator}: {why}")
            raise HostError(
                f"the virtual machine did not start ({'; '.join(results)})", remedy="read its console above"
            )
        except BaseException:
            self.close()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def running(self) -> Running:
        """The machine that runs."""
        assert self._running is not None, "the machine has not been entered"
        return self._running

    def close(self) -> None:
        """Switch it off, hard if it must be."""
        if self._running is not None:
            self._stop(self._running.process, self._running.agent)
            self._running = None
        shutil.rmtree(self._scratch, ignore_errors=True)

    def ask(
        self,
        command: str,
        *,
        user: str | None = None,
        timeout_s: float = 300.0,
        watch: bool = False,
        kill: list[str] | None = None,
        kill_at: int = 0,
    ) -> Answer:
        """Run a shell's command in the machine, as its root or in a login session of ``user``.

        With ``watch`` the instances' groups are noted meanwhile. The Python process whose command line has the words ``kill``
        is killed as soon as a group has ``kill_at`` processes of PostgreSQL.
        """
        self._asked += 1
        request = {"id": self._asked, "command": command, "user": user, "timeout_s": timeout_s, "watch": watch}
        request |= {"kill": kill or [], "kill_at": kill_at}
        self.running.agent.sendall(json.dumps(request).encode() + b"\n")
        document = self._line(self.running.agent, self.running.process, timeout_s + 120.0)
        if document is None:
            raise HostError(
                f"the machine did not answer to `{command}`", remedy="run the bench again, with less beside it"
            )
        assert document.pop("id") == self._asked, "answers come in the order of the requests"
        return Answer.model_validate(document)

    def _boot(self, accelerator: str) -> str | None:
        """Start it; None, or why that failed."""
        began = time.monotonic()
        console, port = self._scratch / f"{accelerator}.console", self._scratch / f"{accelerator}.agent"
        with console.open("wb") as log:
            process = subprocess.Popen(
                engine.child(self._command(accelerator, port)),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | {"TMPDIR": str(self._scratch)},
            )
        agent = _connected(process, port)
        document = None if agent is None else self._line(agent, process, BOOT_S[accelerator])
        if agent is not None and document is not None:
            boot_s = time.monotonic() - began
            self._running = Running(process, agent, accelerator, document["hello"], boot_s)
            return None
        code = process.poll()
        self._stop(process, agent)
        lines = console.read_text(errors="replace").strip().splitlines()
        print(*lines[-20:], sep="\n", file=sys.stderr)
        return f"no answer in {BOOT_S[accelerator]:g} s" if code is None else f"QEMU ended with code {code}"

    def _command(self, accelerator: str, port: Path) -> list[str]:
        tcg = "tcg,thread=multi"
        # QEMU's own counter of cycles is steady; the kernel would not believe it, and ask a slow emulated timer instead.
        clock = "tsc=reliable clocksource=tsc" if accelerator == "tcg" else ""
        append = f"root=/dev/vda rw console=ttyS0 panic=-1 systemd.show_status=0 {clock}"
        return [
            "qemu-system-x86_64", "-accel", tcg if accelerator == "tcg" else accelerator, "-cpu", "max",
            "-smp", str(CPUS), "-m", str(MEMORY_MIB), "-nodefaults", "-display", "none", "-nic", "none", "-no-reboot",
            "-serial", "stdio", "-kernel", str(self._image.kernel), "-initrd", str(self._image.initrd), "-append", append,
            "-drive", f"file={self._image.disk},format=raw,if=virtio,snapshot=on,cache=unsafe",
            "-device", "virtio-serial", "-chardev", f"socket,id=agent,path={port},server=on,wait=on",
            "-device", "virtserialport,chardev=agent,name=agent", "-device", "virtio-rng-pci",
        ]  # fmt: skip

    def _line(self, agent: socket.socket, process: subprocess.Popen[bytes], timeout_s: float) -> dict[str, Any] | None:
        """The agent's next line; None when it does not come, or QEMU ends."""
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._pending:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([agent], [], [], left_s)[0]:
                return None
            read = agent.recv(1 << 20)
            if not read:
                return None
            self._pending += read
        line, _, self._pending = self._pending.partition(b"\n")
        document: dict[str, Any] = json.loads(line)
        return document

    def _stop(self, process: subprocess.Popen[bytes], agent: socket.socket | None) -> None:
        if agent is not None:
            agent.close()
        self._pending = b""
        process.kill()
        process.wait()


def _connected(process: subprocess.Popen[bytes], port: Path) -> socket.socket | None:
    """A connection to the agent's port; QEMU waits for it before it starts the machine."""
    agent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)

    def connects() -> bool:
        with contextlib.suppress(OSError):
            agent.connect(str(port))
            return True
        return False

    if wait_until(lambda: process.poll() is not None or connects(), CONNECT_S) and process.poll() is None:
        return agent
    agent.close()
    return None
