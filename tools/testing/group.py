"""One command of `make test`: its output, line by line, as it comes, and what it cost; and several of them side by side."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING

from pgdyno.machine.process import read_link
from tools.testing import outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What interrupts a run: Ctrl-C, an order to end, a terminal that is gone."""
PATIENCE_S = 60.0
"""An interrupted group has so long to take down its servers and volumes."""
_PRINTING = threading.Lock()


class Group:
    """A command that runs; its lines go to standard output, each with the group's name before it where it is ``piped``."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        environment: Mapping[str, str],
        judge: Callable[[str], outcome.Outcome],
        *,
        piped: bool = True,
    ) -> None:
        """Start it; ``judge`` reads what became of its tests, and is given all that it printed into the pipe."""
        self.name = name
        self.seconds = self.cpu_seconds = 0.0
        self._judge = judge
        self._piped = piped
        self._lines: list[str] = []
        self._began = time.monotonic()
        # A session of its own: what interrupts this process does not reach the group twice.
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else None,
            stderr=subprocess.STDOUT if piped else None,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self.pid_descriptor = os.pidfd_open(self._process.pid)
        # Of a process that the group leaves behind, and that holds the pipe, nothing is waited for.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for line in self._process.stdout or ():
            self._lines.append(line)
            with _PRINTING:
                sys.stdout.write(f"{self.name} | {line.rstrip()}\n")
                sys.stdout.flush()

    def ended(self) -> outcome.Outcome:
        """What became of it; called when :attr:`pid_descriptor` can be read, which is when it has ended."""
        # `wait4` alone says what one child used; `Popen` has the code from here.
        _, status, usage = os.wait4(self._process.pid, 0)
        os.close(self.pid_descriptor)
        self._process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds = time.monotonic() - self._began
        self.cpu_seconds = usage.ru_utime + usage.ru_stime
        self._reader.join(PATIENCE_S)
        text = "".join(self._lines)
        return outcome.with_the_unsaid(self._judge(text), self.name, self._process.returncode, text)

    def interrupt(self, number: signal.Signals) -> None:
        """Interrupt it as Ctrl-C does, and end it when that takes too long. A hang-up is of its terminal where it has no pipe."""
        self._signal(signal.SIGINT if self._piped else number)
        ender = threading.Timer(PATIENCE_S, self._signal, [signal.SIGKILL])
        ender.daemon = True
        ender.start()

    def _signal(self, number: signal.Signals) -> None:
        if self._process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)


class Run:
    """Groups one after another, and side by side; a signal of ``ENDING`` interrupts those that run, and no other begins."""

    def __init__(self) -> None:
        """Listen for the signals. A hang-up that is ignored stays so: the command was started under ``nohup``."""
        self.done: list[tuple[Group, outcome.Outcome]] = []
        self.interrupted: signal.Signals | None = None
        self._running: list[Group] = []
        for number in ENDING:
            if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, self._interrupt)

    def _interrupt(self, number: int, _: object) -> None:
        # Nothing is raised here: whoever waits goes on waiting, for groups that end now.
        self.interrupted = signal.Signals(number)
        if number == signal.SIGHUP:
            leave_terminal()
        for group in self._running:
            group.interrupt(self.interrupted)

    def parts(self, *waiting: Callable[[], Group], at_a_time: int = 1) -> None:
        """Start and run all of them in their order, at most ``at_a_time`` at once."""
        left = list(waiting)
        while left or self._running:
            while left and len(self._running) < at_a_time and not self.interrupted:
                group = left.pop(0)()
                self._running.append(group)
                if self.interrupted:  # meanwhile
                    group.interrupt(self.interrupted)
            if not self._running:
                return
            for group in self._ended():
                self._running.remove(group)
                self.done.append((group, group.ended()))

    def _ended(self) -> list[Group]:
        """Groups that have ended, at least one."""
        poll = select.poll()
        by_descriptor = {group.pid_descriptor: group for group in self._running}
        for descriptor in by_descriptor:
            poll.register(descriptor, select.POLLIN)
        return [by_descriptor[descriptor] for descriptor, _ in poll.poll()]

    @property
    def found(self) -> outcome.Outcome:
        """What became of all tests."""
        return sum((outcome for _, outcome in self.done), outcome.Outcome())


def leave_terminal() -> None:
    """Let what this process prints on a terminal go nowhere. The terminal is gone: an error there would end the clean-up."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in map(int, os.listdir("/proc/self/fd")):
        if read_link(f"/proc/self/fd/{number}").startswith(("/dev/pts/", "/dev/tty", "/dev/console")):
            os.dup2(nowhere, number, inheritable=number <= 2)
    os.close(nowhere)
