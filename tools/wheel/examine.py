"""What a wheel really holds: read from the file, from the engine's ELF headers, and from the engine's own answer."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import tempfile
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tools.wheel import GLIBC, engine
from tools.wheel.licences import Crate
from tools.wheel.pack import THIRD_PARTY

SIZE_MAX_BYTES = 12 << 20
"""What a download in a CI job may weigh; the dependencies are twenty times that."""
LIBRARIES = {"libc.so.6", "libm.so.6", "libgcc_s.so.1", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
"""What every Linux with glibc has. Up to 2.33 threads, dlopen and timers are libraries of their own, and all are glibc's."""
_LOADER = re.compile(r"ld-linux[\w.-]*\.so\.\d")


@dataclass(frozen=True)
class Findings:
    """What was read."""

    wheel: Path
    size_bytes: int
    glibc: tuple[int, int]
    """The newest symbols that the engine asks for."""
    needed: tuple[str, ...]
    build_hash: str
    licences: str

    def lines(self) -> list[str]:
        """For people."""
        return [
            f"  size       {self.size_bytes / 2**20:.1f} MiB",
            f"  glibc      {self.glibc[0]}.{self.glibc[1]}",
            f"  libraries  {', '.join(self.needed)}",
            f"  build hash {self.build_hash}",
            f"  licences   {len(self.licences.encode()) // 1024} KiB of text",
        ]

    def problems(self, build_hash: str, crates: Iterable[Crate]) -> list[str]:
        """Why it must not be given to others; empty when nothing is wrong. ``build_hash`` is that of the sources."""
        problems = []
        if self.glibc > GLIBC:
            newest, allowed = (".".join(map(str, version)) for version in (self.glibc, GLIBC))
            problems.append(
                f"the engine asks for GLIBC_{newest}, and the file's name promises {allowed}: use `make wheel`"
            )
        if foreign := sorted(name for name in self.needed if name not in LIBRARIES and not _LOADER.fullmatch(name)):
            problems.append(f"the engine needs {', '.join(foreign)}, which not every Linux has")
        if self.build_hash != build_hash:
            problems.append(f"the engine was built from other sources ({self.build_hash}) than these ({build_hash})")
        if self.size_bytes > SIZE_MAX_BYTES:
            problems.append(
                f"the file has {self.size_bytes:,} bytes, {SIZE_MAX_BYTES:,} are allowed: is the engine stripped?"
            )
        if unnamed := [crate.title for crate in crates if f"\n{crate.title}: " not in self.licences]:
            problems.append(f"the licences of {', '.join(unnamed)} are missing")
        return problems


def examine(wheel: Path) -> Findings:
    """Read a wheel."""
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory() as folder:
        names = archive.namelist()
        binary = Path(archive.extract(_only(names, f"scripts/{engine.NAME}"), folder))
        binary.chmod(stat.S_IRWXU)
        answer = subprocess.run([binary, "version"], check=True, capture_output=True)
        results = [name for name in names if name.endswith(f"licenses/{THIRD_PARTY}")]
        return Findings(
            wheel,
            wheel.stat().st_size,
            newest_glibc(_read_elf(binary, "--version-info")),
            tuple(re.findall(r"\(NEEDED\).*\[(.+)\]", _read_elf(binary, "--dynamic"))),
            str(json.loads(answer.stdout)["build_hash"]),
            archive.read(results[0]).decode() if results else "",
        )


def newest_glibc(version_info: str) -> tuple[int, int]:
    """The highest version among the symbols that a program asks for, from what ``readelf --version-info`` prints."""
    findall = re.findall(r"GLIBC_(\d+)\.(\d+)", version_info)
    return max(((int(major), int(minor)) for major, minor in findall), default=(0, 0))


def _read_elf(binary: Path, part: str) -> str:
    return subprocess.run(["readelf", "--wide", part, binary], check=True, capture_output=True, text=True).stdout


def _only(names: list[str], ending: str) -> str:
    [only] = [name for name in names if name.endswith(ending)]
    return only
