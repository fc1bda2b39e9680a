"""Makes the parts of the record, each in a folder of its own that is removed afterwards."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from pgdyno.base.errors import HostError
from tools.install import RESULTS, ROOT, image
from tools.install.record import Installed, Record, Sources, Wheel, load_average
from tools.install.root import Root
from tools.install.walk import GIVEN, Walk
from tools.wheel import examine

FIRST = ("trixie", "pipx")
"""The one in which the demonstration runs."""
SYSTEMS = (FIRST, ("trixie", "uv"), ("bookworm", "pipx"), ("sid", "uv"), ("bullseye", "uv"))
"""Debian's stable release of November 2026, two older ones, and what the next will be."""
PARTS = ("wheel", *(" ".join(texts) for texts in SYSTEMS), "image", "sources")
LOAD = ROOT / "tests" / "size" / "files" / "iostat-12.7.txt"
_NOT_OURS = ("PYTHONPATH", "PGDYNO_ENGINE", "VIRTUAL_ENV", "CARGO_TARGET_DIR")
_RELEASE = "sed -n 's/^PRETTY_NAME=\"\\(.*\\)\"/\\1/p' /etc/os-release; cat /etc/debian_version"


def make(part: str, record: Record) -> None:
    """Make one part anew."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-install-", dir="/var/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)  # the ordinary user's programs pass through
        if part == "wheel":
            record.wheel = wheel(folder)
        elif part == "image":
            record.image = image.measure(folder, the_wheel(record), LOAD)
        elif part == "sources":
            record.sources = sources(folder)
        else:
            suite, way = part.split()
            record.replace(installed(suite, way, folder / "root", the_wheel(record)))


def _environment() -> dict[str, str]:
    """This process's variables without those of a developer: the build has the profile that is in Cargo.toml."""
    kept = os.environ.items()
    return {name: value for name, value in kept if name not in _NOT_OURS and not name.startswith("CARGO_PROFILE_")}


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def the_wheel(record: Record) -> Path:
    """The wheel that was made for this record."""
    if record.wheel is None:
        raise HostError("there is no wheel to install", remedy="make the part `wheel` first")
    return RESULTS / record.wheel.name


def wheel(folder: Path) -> Wheel:
    """`make wheel` in a fresh clone, as somebody else would."""
    clone = folder / "clone"
    before, began, cpu_s = load_average(), time.monotonic(), _children_cpu_s()
    subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
    done = subprocess.run(["make", "wheel"], cwd=clone, env=_environment(), check=False)
    seconds = time.monotonic() - began
    made = sorted((clone / "dist").glob("*.whl"))
    if done.returncode != 0 or not made:
        raise HostError("`make wheel` failed in a fresh clone", remedy="read what it said")
    RESULTS.mkdir(parents=True, exist_ok=True)
    kept = Path(shutil.copy(made[0], RESULTS))
    result = examine.examine(kept)
    glibc = ".".join(map(str, result.glibc))
    return Wheel(
        name=kept.name,
        seconds=round(seconds, 1),
        cpu_s=round(_children_cpu_s() - cpu_s, 1),
        load=f"{before} to {load_average()}",
        size_bytes=result.size_bytes,
        glibc=glibc,
        libraries=list(result.needed),
    )


def installed(suite: str, way: str, path: Path, wheel: Path) -> Installed:
    """The walk in a bare root."""
    root = Root.make(suite, path)
    given = path / GIVEN.removeprefix("/")
    given.mkdir(parents=True)
    shutil.copy(wheel, given)
    shutil.copy(LOAD, given / "load.txt")
    with root.opened():
        release = ", ".join(dict.fromkeys(root.must(_RELEASE).out.split("\n")[:2]))
        installed = Installed(
            suite=suite,
            way=way,
            release=release,
            glibc=root.must("ldd --version").out.splitlines()[0].split()[-1],
            python="",
        )
        Walk(root, installed, wheel.name).whole(demo=(suite, way) == FIRST)
        version = root.shell("python3 --version")
        installed.python = version.out.strip() or "none"
    return installed


def sources(folder: Path) -> Sources:
    """The source distribution, built by pip with Rust in an empty environment, and tests/cli on what it installed."""
    from tools.wheel import sdist

    made = sdist.write(ROOT, folder)
    python = folder / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
    environment = _environment()
    began = time.monotonic()
    subprocess.run([python, "-m", "pip", "--quiet", "install", made], check=True, env=environment)
    build_s = time.monotonic() - began
    lock = ("--require-hashes", "--only-binary", ":all:", "-r", ROOT / "requirements.lock")
    subprocess.run([python, "-m", "pip", "--quiet", "install", *lock], check=True, env=environment)
    tests = (python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/cli")
    done = subprocess.run(tests, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    print(done.stdout[-4000:], file=sys.stderr)
    summed = re.sub(r"[= ]*(.*?)[= ]*$", r"\1", done.stdout.strip().splitlines()[-1])
    return Sources(
        name=made.name,
        size_bytes=made.stat().st_size,
        build_s=round(build_s, 1),
        tests=summed,
        holds=done.returncode == 0 and "passed" in summed,
    )
