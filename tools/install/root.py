"""A bare Debian root, made by debootstrap, and programs that are run in it as root or as an ordinary user.

The programs have mounts and process ids of their own: their ``/dev/shm``, ``/run`` and whatever pgdyno mounts are not this machine's,
and are gone with the first of them. Devices, control groups and the network are the machine's.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shutil
import signal
import ssl
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base.errors import HostError
from pgdyno.machine import dirty_limits, preflight
from tools.install.record import Done

if TYPE_CHECKING:
    from collections.abc import Iterator

USER = "ann"
"""The ordinary user. Her home directory is closed to others, and sudo asks her for no password."""
PROGRAMS = ("debootstrap", "nsenter", "unshare", "chroot")
TIMEOUT_S = 1800.0
"""A demonstration takes four minutes on a quiet machine."""
_BUNDLE = "etc/ssl/registry.pem"
"""Certificates of this machine, which its registries may need."""
_PASSED = ("http_proxy", "https_proxy", "no_proxy", "PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "UV_DEFAULT_INDEX")
"""Variables that say how this machine reaches its registries."""
_ENTER = """\
mount --bind . .
cd "$PWD"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777,size=8g tmpfs dev/shm
mount -t tmpfs -o mode=755 tmpfs run
mkdir run/old
pivot_root . run/old
cd /
umount -l run/old
rmdir run/old
echo ready
sleep infinity &
wait
"""
"""The first process of the root: a shell that waits reaps what others leave. The root is a mount, as pgdyno makes mounts private."""


class Root:
    """A root directory. Programs run between :meth:`opened`'s beginning and its end."""

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._first = 0
        """Its first process, by this machine's number; 0 while it is not open."""

    @classmethod
    def make(cls, suite: str, path: Path) -> Root:
        """Debian's ``suite`` without a recommended package, at ``path``. :class:`HostError` with what debootstrap said."""
        preflight.require_root("debootstrap")
        preflight.require_programs(*PROGRAMS)
        command = ["debootstrap", "--variant=minbase", suite, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            line = (done.stdout + done.stderr).strip().splitlines()[-1:]
            raise HostError(f"debootstrap made no {suite}: {' '.join(line)}", remedy="read what it said")
        made = cls(path)
        made._reach_registries()
        return made

    def _reach_registries(self) -> None:
        shutil.copy("/etc/resolv.conf", self.path / "etc" / "resolv.conf")
        (self.path / "etc" / "hosts").write_text(f"127.0.0.1 localhost {platform.node()}\n", encoding="ascii")
        # A registry's copy of a release that still changes may be older than the release says it is valid.
        kept = self.path / "etc" / "apt" / "apt.conf.d" / "99registry"
        kept.write_text('Acquire::Check-Valid-Until "false";\n', encoding="ascii")
        (self.path / _BUNDLE).parent.mkdir(parents=True, exist_ok=True)
        bundle = os.environ.get("SSL_CERT_FILE") or ssl.get_default_verify_paths().cafile
        if bundle is not None:
            shutil.copy(bundle, self.path / _BUNDLE)

    @contextlib.contextmanager
    def opened(self) -> Iterator[Root]:
        """Have mounts and process ids of its own; at the end everything that runs in it is killed."""
        apart = ("unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
        with subprocess.Popen(
            [*apart, "sh", "-ec", _ENTER], cwd=self.path, stdout=subprocess.PIPE, text=True
        ) as holder:
            try:
                assert holder.stdout is not None
                if holder.stdout.readline().strip() != "ready":
                    raise HostError(f"{self.path} was not entered", remedy="run it as root, with mounts allowed")
                children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children")
                self._first = int(children.read_text(encoding="ascii").split()[0])
                yield self
            finally:
                self._first = 0
                holder.kill()

    def run(self, *words: str | Path, user: str = "root", timeout_s: float = TIMEOUT_S) -> Done:
        """Run a program to its end; what it says is kept. :class:`subprocess.TimeoutExpired`."""
        began = time.monotonic()
        with self.started(*words, user=user) as process:
            try:
                out, err = process.communicate(timeout=timeout_s)
            except subprocess.TimeoutExpired:
                process.kill()
                raise
        return Done(process.returncode, out, err, time.monotonic() - began)

    def cpu_s(self, *words: str | Path, user: str) -> float:
        """CPU that a program takes, with what enters the root: less than 10 ms."""
        process = self.started(*words, user=user, quiet=True)
        _, _, usage = os.wait4(process.pid, 0)
        process.returncode = 0
        return usage.ru_utime + usage.ru_stime

    def started(self, *words: str | Path, user: str = "root", quiet: bool = False) -> subprocess.Popen[str]:
        """Start a program."""
        assert self._first, "the root is not open"
        enter = ["nsenter", "--target", str(self._first), "--mount", "--pid", "--root", "--wd"]
        become = [] if user == "root" else ["setpriv", "--reuid", user, "--regid", user, "--init-groups"]
        settings = (f"{name}={value}" for name, value in self._environment(user).items())
        where = ["env", "-i", f"--chdir={self.home(user)}", *settings]
        output = subprocess.DEVNULL if quiet else subprocess.PIPE
        return subprocess.Popen(
            [*enter, *become, *where, *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            text=True,
        )

    def shell(self, line: str, *, user: str = "root", timeout_s: float = TIMEOUT_S) -> Done:
        """Run a line of a shell, as somebody types it."""
        return self.run("sh", "-c", line, user=user, timeout_s=timeout_s)

    def must(self, line: str, *, user: str = "root") -> Done:
        """The same, and :class:`HostError` when it fails: it is what the walk supposes, and not what it is about."""
        done = self.shell(line, user=user)
        if done.code != 0:
            raise HostError(f"`{line}` failed: {done.said[-400:].strip()}", remedy="read what it said")
        return done

    @property
    def inside(self) -> Path:
        """The root as its programs see it, with what is mounted in it."""
        assert self._first, "the root is not open"
        return Path(f"/proc/{self._first}/root")

    def registries(self) -> dict[str, str]:
        """Variables with which programs in it reach the registries."""
        kept = {name: os.environ[name] for name in _PASSED if name in os.environ}
        there = (self.path / _BUNDLE).exists()
        return kept | (dict.fromkeys(("PIP_CERT", "SSL_CERT_FILE"), f"/{_BUNDLE}") if there else {})

    @staticmethod
    def home(user: str) -> str:
        """The user's home directory."""
        return "/root" if user == "root" else f"/home/{user}"

    def _environment(self, user: str) -> dict[str, str]:
        home = self.home(user)
        system = (
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
            if user == "root"
            else "/usr/local/bin:/usr/bin:/bin"
        )
        return {
            "HOME": home,
            "USER": user,
            "LANG": "C.UTF-8",
            "PATH": f"{home}/.local/bin:{system}",
            "DEBIAN_FRONTEND": "noninteractive",
            **self.registries(),
        }

    def kill(self) -> None:
        """Kill what runs in it, and leave it open."""
        for pid in self.processes():
            if pid != self._first:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """What runs in it, by this machine's numbers."""
        own = Path(f"/proc/{self._first}/ns/pid").readlink()
        processes = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if (entry / "ns" / "pid").readlink() == own:
                        processes.append(int(entry.name))
        return processes


@contextlib.contextmanager
def machine_held() -> Iterator[None]:
    """Keep runs outside from setting the kernel's dirty limits: they exist once, and a root has a lock of its own in its /run."""
    held = dirty_limits.record().take(TIMEOUT_S)
    if held is None:
        raise HostError("another run has set the kernel's dirty limits", remedy="run it again when that has ended")
    try:
        yield
    finally:
        os.close(held)


def add_user(root: Root) -> None:
    """Make the ordinary user, whom sudo trusts as it does the administrator of a machine of her own."""
    root.must(f"useradd --create-home --shell /bin/bash {USER} && chmod 0700 /home/{USER}")
    root.must(
        f"mkdir -p /etc/sudoers.d && echo '{USER} ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/{USER} && chmod 0440 /etc/sudoers.d/{USER}"
    )
