"""The image of the Containerfile: built on a base that debootstrap made, without a registry of images, and run."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.base.errors import PgdynoError
from tools.install import ROOT
from tools.install.containers import DRIVER, Containers
from tools.install.record import Image, Step, load_average
from tools.install.root import Root, machine_held
from tools.install.walk import LOAD, SERVER, SHORT

if TYPE_CHECKING:
    from collections.abc import Sequence

FILE = ROOT / "Containerfile"
GUIDE = ROOT / "docs" / "guide" / "install.md"
_SLIM = ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man", "usr/share/info")
"""What Debian's slim images leave out, and what debootstrap downloaded."""
_CACHES = ("var/lib/apt/lists", "var/cache/apt/archives", "root/.cache", "work/.cache", "tmp")
_LAYERS = 2
"""The base, and the one of the Containerfile's RUN."""
_SAID = 400


def suite() -> str:
    """Debian's name of the release that the Containerfile is based on."""
    match = re.search(r"^ARG BASE=\S+/debian:([a-z]+)-", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None, "the Containerfile names no base"
    return match[1]


def documented() -> list[str]:
    """The words of the guide's command that runs a comparison in a container, up to the image's name."""
    match = re.search(r"^\$ (podman run .*?) pgdyno compare", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert match is not None, f"{GUIDE} has no command that runs the image"
    return [word for word in shlex.split(match[1])[2:] if word != "--rm"]


def base(folder: Path) -> Root:
    """What the Containerfile's base is, made by debootstrap, without what slim images leave out."""
    made = Root.make(suite(), folder)
    for name in _SLIM:
        for inside in (made.path / name).iterdir():
            shutil.rmtree(inside) if inside.is_dir() else inside.unlink()
    (made.path / "var/cache/apt/archives/partial").mkdir(parents=True)
    return made


def run(containers: Containers, given: Path, results: Path) -> list[Step]:
    """What runs in a container: as its user, with the documented flags, and what is said without each of them."""
    steps: list[Step] = []

    def step(name: str, words: Sequence[str], *, codes: tuple[int, ...] = (0,), has: Sequence[str] = ()) -> None:
        done = containers.run("podman", *words)
        # As in the guide: without the bench's own limits.
        steps.append(Step.of(name, containers.shown(words), done, codes=codes, has=tuple(has)))

    at_work = ("-v", f"{results}:/work")
    flags = [results_for(word, results) for word in documented()]
    step("its user", containers.container(entry=("id", "-un")), has=["pgdyno"])
    step("version", [*containers.container(), "--version"], has=["pgdyno"])
    sizing = ["size", "--iostat", "/given/load.txt", "--size", "350GiB"]
    step("sizing, without root", [*containers.container("-v", f"{given}:/given:ro"), *sizing], has=["gp3"])
    load = SERVER.format(python="/opt/pgdyno/bin/python") + LOAD
    step("a load, without root", containers.container(entry=("sh", "-ec", load)), has=["2 rows"])
    with machine_held():
        step("a comparison", [*containers.container(*flags), "compare", "null", "null", *SHORT.split()], has=["null"])
    made = "cd /work && pgdyno report $(ls -d results/*-compare-*) --format md"
    step("its report, without root", containers.container(*at_work, entry=("sh", "-ec", made)), has=["null"])
    step("a query, without root", [*containers.container(*at_work), "query", "SELECT count(*) FROM runs"], has=["4"])
    for name, words, named in without(flags):
        step(name, [*containers.container(*words), "doctor"], codes=(3,), has=named)
    return steps


def without(flags: list[str]) -> list[tuple[str, list[str], list[str]]]:
    """The documented flags without each of them that makes a difference: a name, what is left, what `doctor` then says."""
    bare = _less(flags, "--privileged")
    fuse, no_mounts = ["--device", "/dev/fuse"], "pass `--device /dev/fuse --cap-add SYS_ADMIN"
    loop = ["/dev/loop-control is missing", "in a container pass `--privileged`"]
    return [
        ("without --user root", _less(flags, "--user", "root"), ["needs root", "in a container pass `--user root`"]),
        ("without --shm-size", _less(flags, "--shm-size", "8g"), ["in a container pass `--shm-size 8g`"]),
        (
            "without --privileged",
            bare,
            [
                "/dev/fuse is missing",
                no_mounts,
                *loop,
                "is read-only here",
                "start it with `--cgroupns=host --privileged`",
            ],
        ),
        ("with /dev/fuse alone", [*bare, *fuse], ["can be opened", "fail mounts", no_mounts, *loop]),
        ("with /dev/fuse and SYS_ADMIN", [*bare, *fuse, "--cap-add", "SYS_ADMIN"], ["FUSE can be mounted", *loop]),
    ]


def _less(flags: list[str], *words: str) -> list[str]:
    at = flags.index(words[0])
    return flags[:at] + flags[at + len(words) :]


def results_for(word: str, results: Path) -> str:
    """A word of the documented command, with the folder of this bench for the reader's own."""
    return word.replace("$PWD", str(results))


def measure(folder: Path, wheel: Path, load: Path) -> Image:
    """Build it and run it below ``folder``."""
    made = base(folder / "base")
    context = folder / "context"
    (context / "dist").mkdir(parents=True)
    shutil.copy(wheel, context / "dist")
    given, results = folder / "given", folder / "results"
    given.mkdir()
    shutil.copy(load, given / "load.txt")
    results.mkdir()
    results.chmod(0o777)
    try:
        return _in_containers(made, context, given, results)
    except (PgdynoError, FileNotFoundError) as error:
        print(f"image: in a chroot, as {error}", file=sys.stderr)
        return _in_chroot(made, context, str(error))


def _in_containers(made: Root, context: Path, given: Path, results: Path) -> Image:
    """Built by buildah, run by podman."""
    containers = Containers(context.parent)
    before, began = load_average(), time.monotonic()
    containers.import_base(made)
    containers.build(FILE, context)
    seconds, load = time.monotonic() - began, f"{before} to {load_average()}"
    with containers.tree() as tree:
        size_mb, clean = _size_mb(tree), no_cache(tree, containers.layers())
    return Image(
        built_by=f"{containers.must('buildah', '--version')}, {DRIVER}",
        run_by=containers.must("podman", "--version"),
        base=f"{suite()} by debootstrap",
        seconds=round(seconds, 1),
        load=load,
        size_mb=size_mb,
        steps=[clean, *run(containers, given, results)],
    )


def _in_chroot(made: Root, context: Path, why: str) -> Image:
    """The commands of the Containerfile in a chroot of its base, with the wheel where its mount would be."""
    shutil.copytree(context / "dist", made.path / "dist", dirs_exist_ok=True)
    before, began = load_average(), time.monotonic()
    with made.opened():
        for line in steps_of(FILE):
            made.must(line)
        seconds, load = time.monotonic() - began, f"{before} to {load_average()}"
        steps = run_in_chroot(made)
    shutil.rmtree(made.path / "dist")
    return Image(
        built_by=f"the same steps in a chroot ({why})",
        run_by="chroot",
        base=f"{suite()} by debootstrap",
        seconds=round(seconds, 1),
        load=load,
        size_mb=_size_mb(made.path),
        steps=[no_cache(made.path, None), *steps],
    )


def _size_mb(tree: Path) -> float:
    """Decimal megabytes of all files."""
    return round(sum(path.lstat().st_size for path in tree.rglob("*") if not path.is_dir()) / 1e6, 1)


def steps_of(file: Path) -> list[str]:
    """The shell commands of a Containerfile's RUN instructions."""
    joined = re.sub(r"\\\n\s*", "", file.read_text(encoding="utf-8"))
    return re.findall(r"^RUN (?:--mount=\S+ +)?(.+)$", joined, re.MULTILINE)


def run_in_chroot(made: Root) -> list[Step]:
    """What can be run without containers: there are no flags to omit."""
    lines = (("version", "pgdyno --version"), ("a comparison", f"pgdyno compare null null {SHORT}"))
    with machine_held():
        return [Step.of(name, line, made.shell(line)) for name, line in lines]


def no_cache(tree: Path, layers: int | None) -> Step:
    """Nothing of packages' lists, of installers and of the wheel is in the image, and so in none of its two layers."""
    texts = [str(path.relative_to(tree)) for name in _CACHES for path in (tree / name).glob("*") if not path.is_dir()]
    texts += [str(path.relative_to(tree)) for path in (tree / "opt/pgdyno").rglob("*.whl")]
    if layers not in (None, _LAYERS):
        texts.append(f"{layers} layers")
    return Step(
        name="no cache in a layer",
        command="",
        code=0,
        seconds=0,
        holds=not texts,
        said=" ".join(texts)[:_SAID],
    )
