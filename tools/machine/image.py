"""The machine's root: Debian's packages, a user with sudo, the wheel installed by pipx, all as one file with an ext4.

No device or file system of this host is mounted that stays or that others see: mmdebstrap and the installation work in
mount namespaces of their own, and `mke2fs -d` fills the file system without mounting it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pgdyno import _build
from pgdyno.base.errors import HostError
from tools.machine import ROOT
from tools.wheel import examine

PACKAGES = (
    "systemd-sysv", "dbus", "libpam-systemd", "udev", "kmod", "linux-image-cloud-amd64", "sudo", "procps", "pipx",
    "python3-venv", "util-linux", "mount", "e2fsprogs", "xfsprogs", "dmsetup", "nbd-client",
)  # fmt: skip
"""What the root has beside Debian's smallest set. libpam-systemd gives a login its scope; there is no compiler and no Rust."""
RELEASES = {"bookworm": "3.11", "trixie": "3.13"}
"""Debian's releases whose Python runs pgdyno, with its version: the wheels are chosen for it."""
USER = "tester"
HOST_NAME = "machine"
SIZE = "8G"
"""Sparse: 2 GB are written."""
_PROGRAMS = {
    "qemu-system-x86_64": "qemu-system-x86", "mmdebstrap": "mmdebstrap", "mke2fs": "e2fsprogs", "tar": "tar",
    "unshare": "util-linux", "chroot": "coreutils",
}  # fmt: skip
_PACKAGES_S, _STEP_S = 1200.0, 600.0

_UNIT = """\
[Unit]
Description=Answers the host
After=local-fs.target systemd-logind.service

[Service]
ExecStart=/usr/bin/python3 /opt/agent.py /dev/virtio-ports/agent
StandardError=journal+console

[Install]
WantedBy=multi-user.target
"""
_INSTALL = """\
set -e
mkdir root/mnt/wheels
mount --bind wheels root/mnt/wheels
exec chroot --userspec={user}:{user} root /usr/bin/env -i HOME=/home/{user} PATH=/usr/bin:/bin LC_ALL=C.UTF-8 \
    PIP_NO_INDEX=1 PIP_FIND_LINKS=/mnt/wheels PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 \
    pipx install /mnt/wheels/{wheel}
"""


@dataclass(frozen=True)
class Image:
    """Files that QEMU starts from."""

    disk: Path
    kernel: Path
    initrd: Path

    @classmethod
    def named(cls, folder: Path) -> Self:
        """Where its files are below ``folder``."""
        return cls(folder / "disk.ext4", folder / "kernel", folder / "initrd")

    @classmethod
    def below(cls, folder: Path) -> Self | None:
        """The one that an earlier bench kept; None where there is none."""
        result = cls.named(folder)
        return result if result.disk.is_file() else None


def missing() -> str | None:
    """Why the machine cannot be made here, with the packages to install; None where it can."""
    lacks = {program: package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    if not lacks:
        return None
    return f"needs {', '.join(lacks)}: `apt install {' '.join(sorted(set(lacks.values())))}`"


def require_programs() -> None:
    """:class:`HostError` with the packages to install where the machine cannot be made."""
    if (why := missing()) is not None:
        what, _, remedy = why.partition(": ")
        raise HostError(f"the virtual machine {what}", remedy=f"run {remedy}")


def wheel(root: Path = ROOT) -> Path:
    """The file that `make wheel` made of these sources. :class:`HostError` where it has to be made first."""
    paths = sorted((root / "dist").glob("pgdyno-*.whl"))
    if not paths:
        raise HostError("there is no wheel in dist/", remedy="run `make wheel`")
    if examine.examine(paths[-1]).build_hash != _build.hash_sources(root) or not has_the_code(paths[-1], root):
        raise HostError(f"{paths[-1].name} was made of other sources than these", remedy="run `make wheel`")
    return paths[-1]


def has_the_code(made: Path, root: Path) -> bool:
    """Whether a wheel's Python files are these."""
    with zipfile.ZipFile(made) as archive:
        held = {name: archive.read(name) for name in archive.namelist() if name.endswith(".py")}
    package = root / "python"
    return held == {path.relative_to(package).as_posix(): path.read_bytes() for path in package.rglob("*.py")}


def make(made: Path, release: str, folder: Path) -> Image:
    """Make the root in ``folder``, with the wheel ``made`` installed in it."""
    root, archive, wheels = folder / "root", folder / "root.tar", folder / "wheels"
    print(f"machine: packages of Debian {release}", file=sys.stderr, flush=True)
    packages = ["--variant=minbase", f"--include={','.join(PACKAGES)}", release, str(archive)]
    _do(["mmdebstrap", "--quiet", *packages], folder, _PACKAGES_S)
    root.mkdir()
    _do(["tar", "--extract", "--file", str(archive), "--directory", str(root)], folder)
    archive.unlink()
    furnish(root)
    _do(["chroot", str(root), "useradd", "--create-home", "--shell", "/bin/bash", USER], folder)
    (root / "home" / USER).chmod(0o700)
    _do(["chroot", str(root), "systemctl", "enable", "--quiet", "agent.service"], folder)
    print("machine: the wheel and what it depends on", file=sys.stderr, flush=True)
    download(made, RELEASES[release], wheels)
    script = _INSTALL.format(user=USER, wheel=made.name)
    own = ["unshare", "--mount", "--pid", "--fork", f"--mount-proc={root / 'proc'}"]
    _do([*own, "sh", "-c", script], folder)
    print("machine: its disk", file=sys.stderr, flush=True)
    return pack(folder)


def furnish(root: Path) -> None:
    """Write what makes a root this machine: its name, the agent, a user who may use sudo."""
    files = {
        "etc/hostname": f"{HOST_NAME}\n",
        "etc/hosts": f"127.0.0.1 localhost {HOST_NAME}\n",
        "etc/fstab": "/dev/vda / ext4 defaults 0 1\n",
        "etc/systemd/system/agent.service": _UNIT,
        f"etc/sudoers.d/{USER}": f"{USER} ALL=(ALL) NOPASSWD: ALL\n",
    }
    for name, text in files.items():
        (root / name).write_text(text, encoding="utf-8")
    shutil.copy(Path(__file__).with_name("agent.py"), root / "opt" / "agent.py")


def download(made: Path, python: str, folder: Path) -> None:
    """Fetch the wheels that ``made`` depends on for a version of Python, and those that pipx needs for itself."""
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    wanted = ["--python-version", python, "--dest", str(folder), str(made), "pip", "setuptools", "wheel"]
    _do([*pip, *wanted], ROOT)


def pack(folder: Path) -> Image:
    """Make the disk of a root, and copy what boots it."""
    root = folder / "root"
    image, unfinished = Image.named(folder), folder / "unfinished.ext4"
    for name, target in (("vmlinuz-*", image.kernel), ("initrd.img-*", image.initrd)):
        [path] = (root / "boot").glob(name)
        shutil.copy(path, target)
    _do(["mke2fs", "-q", "-t", "ext4", "-d", str(root), str(unfinished), SIZE], folder)
    unfinished.rename(image.disk)
    shutil.rmtree(root)
    return image


def _do(command: list[str], folder: Path, timeout_s: float = _STEP_S) -> None:
    """Run a command that needs no input; its last words are in the error."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise HostError(f"`{command[0]}` did not end within {timeout_s:g} s", remedy="run it again") from None
    if done.returncode:
        last = " ".join(done.stderr.split())[-500:]
        raise HostError(f"`{' '.join(command)[:200]}` ended with {done.returncode}: {last}", remedy="run it again")
