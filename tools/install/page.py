"""The reference's page on installing, from a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.install.measure import PARTS
from tools.install.root import USER, Root
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim
    from tools.install.record import Image, Installed, Record, Step

_HEAD = """# Installing where there is no clone

<!-- Written by `make bench ONLY=install` from tools/install. -->

The wheel, the image and the source distribution, installed and used as somebody else would. `make bench ONLY=install` makes all parts
again and writes this page; the record stays as JSON in `results/install/`. [Installing](../guide/install.md) has the commands.

- **wheel**: `make wheel` in a fresh clone, packages and build included; what the file asks for is read from it.
- **a release of Debian and an installer**: a bare root made by debootstrap (no compiler, no Rust, no clone), in which an ordinary user
  with sudo and a home directory of mode 0700 installs the wheel. The user types each command without sudo first and runs the one that the error
  names. Real FUSE and loop devices, the kernel and control groups of this machine.
- **first verdict**: from the bare root to the end of `pgdyno demo`.
- **image**: the Containerfile, on a base that debootstrap made of the same release; no registry of images is asked. It runs with the flags of the guide, and
  without each of them `pgdyno doctor` names what is missing and the flag. (`--cgroupns=host` matters under version 2 of control groups, which [another
  machine](machine.md) has.)
- **source distribution**: pip builds it with Rust in an empty virtual environment; then the tests of `tests/cli` run on what it installed.

A time was measured beside whatever else the machine did: its load average stands with it.
"""


def render(record: Record, claims: list[Claim]) -> str:
    """The page."""
    parts = [_HEAD, _where(record), "## Claims\n", claims_table(claims), "## Systems\n", _systems(record.installed)]
    for installed in record.installed:
        if failed := [step for step in installed.steps if not step.holds]:
            parts += [f"### {installed.release}, {installed.way}: what does not hold\n", _steps(failed)]
    if weighed := [installed for installed in record.installed if installed.sizes_mb]:
        parts += ["## Weight\n", _weight(weighed[0])]
    if record.image is not None:
        parts += ["## Image\n", _image(record.image)]
    return "\n\n".join(part.strip() for part in parts) + "\n"


def _where(record: Record) -> str:
    wheel = f"`{record.wheel.name}`; " if record.wheel else ""
    built = "" if record.sources is None else f" pip builds `{record.sources.name}` in {record.sources.build_s:.0f} s."
    left = [part for part in PARTS if not record.has(part)]
    missing = f" **Not measured: {', '.join(left)}.**" if left else ""
    return (
        f"{record.begin:%Y-%m-%d %H:%M} UTC, {record.machine}, Linux {record.kernel}; {wheel}commit {record.commit},"
        f" engine {record.build_hash[:12]}.{built}{missing}\n"
    )


def _systems(there: Sequence[Installed]) -> str:
    rows = []
    for installed in there:
        cost = "" if installed.help_cpu_s is None else f"{installed.help_cpu_s:.2f}"
        ran = (
            f"not installed: {installed.not_had}"
            if installed.not_had
            else f"{sum(step.holds for step in installed.steps)} of {len(installed.steps)}"
        )
        rows.append([installed.release, installed.glibc, installed.python, installed.way, ran, cost])
    return md.table(["system", "glibc", "Python", "installer", "commands", "CPU of help above Python's, s"], rows)


def _steps(steps: Sequence[Step]) -> str:
    rows = [
        [
            step.name,
            md.code("; ".join(step.command.strip().splitlines()).replace(Root.home(USER), "~")),
            str(step.code),
            "yes" if step.holds else "**no**",
        ]
        for step in steps
    ]
    return md.table(["step", "command", "exit code", "holds"], rows)


def _weight(installed: Installed) -> str:
    whole = sum(installed.sizes_mb.values())
    rows = [[name, f"{size:.1f}"] for name, size in installed.sizes_mb.items() if size >= 1]
    small = whole - sum(size for size in installed.sizes_mb.values() if size >= 1)
    rows += [["all others together", f"{small:.1f}"], ["**all**", f"{whole:.0f}"]]
    return f"Installed files of each distribution, with {installed.python}:\n\n" + md.table(
        ["distribution", "MB"], rows
    )


def _image(image: Image) -> str:
    text = f"Built by {image.built_by}, run by {image.run_by}; base: {image.base}. {image.seconds:.0f} s, {image.size_mb:.0f} MB.\n\n"
    return text + _steps(image.steps)
