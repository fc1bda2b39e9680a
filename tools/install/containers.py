"""Buildah and podman, with a storage of their own that is gone with its folder."""

from __future__ import annotations

import contextlib
import json
import resource
import shlex
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base.errors import HostError
from tools.install.record import Done

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tools.install.root import Root

NAME = "localhost/pgdyno"
BASE = "localhost/base"
DRIVER = "overlay" if "\toverlay\n" in Path("/proc/filesystems").read_text(encoding="ascii") else "vfs"
"""vfs works everywhere and copies the whole image for each container."""
_PODMAN = ("--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "file", "--log-level", "error")
"""runc, as Debian 12's crun refuses control groups of version 1 beside an empty version 2; no systemd, no journal."""
_PROCESSES = 1000
_SAID = 400
_TIMEOUT_S = 600


@dataclass
class Containers:
    """Buildah and podman with a storage of their own."""

    folder: Path

    def run(self, program: str, *words: str | Path) -> Done:
        """Run one of the two to its end."""
        own = _PODMAN if program == "podman" else ()
        storage = ("--root", self.folder / "storage", "--runroot", self.folder / "run", "--storage-driver", DRIVER)
        command = [program, *own, *storage, *words]
        began = time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, cwd=self.folder)
        return Done(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    def must(self, program: str, *words: str | Path) -> str:
        """What it printed; :class:`HostError` when it failed."""
        done = self.run(program, *words)
        if done.code != 0:
            raise HostError(f"{program} {words[0]} failed: {done.err[-_SAID:].strip()}", remedy="read what it said")
        return done.out.strip()

    def import_base(self, made: Root) -> None:
        """Have the base as an image. Its variables say how this machine reaches its registries."""
        container = self.must("buildah", "from", "scratch")
        self.must("buildah", "add", "--quiet", container, made.path, "/")
        settings = [word for name, value in made.registries().items() for word in ("--env", f"{name}={value}")]
        self.must("buildah", "config", *settings, container)
        self.must("buildah", "commit", "--quiet", container, BASE)
        self.must("buildah", "rm", container)

    def build(self, file: Path, context: Path) -> None:
        """Build a Containerfile."""
        words = ("--isolation", "chroot", "--build-arg", f"BASE={BASE}", "--tag", NAME, "--file", file, context)
        self.must("buildah", "bud", *words)

    @contextlib.contextmanager
    def tree(self) -> Iterator[Path]:
        """All files of the image, while they are looked at."""
        container = self.must("buildah", "from", NAME)
        try:
            yield Path(self.must("buildah", "mount", container))
        finally:
            self.run("buildah", "rm", container)

    def layers(self) -> int:
        """The image's layers."""
        document = json.loads(self.must("buildah", "inspect", "--type", "image", NAME))
        return len(document["OCIv1"]["rootfs"]["diff_ids"])

    def container(self, *flags: str, entry: Sequence[str] = ()) -> list[str]:
        """Words for podman that run the image."""
        start = ("--entrypoint", entry[0]) if entry else ()
        return ["run", "--rm", *_here(), *flags, *start, NAME, *entry[1:]]

    def shown(self, words: Sequence[str]) -> str:
        """A command of :meth:`container` as somebody types it, without what is this machine's."""
        text = shlex.join(["podman", *words]).replace(f"{shlex.join(_here())} ", "")
        return text.replace(str(self.folder), "$PWD").replace(NAME, Path(NAME).name)


def _here() -> list[str]:
    """No network, and the limits of this process, which not every machine may raise."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    limits = ("--ulimit", f"nofile={files}:{files}", "--ulimit", f"nproc={_PROCESSES}:{_PROCESSES}")
    return ["--network", "none", *limits]
