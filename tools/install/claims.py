"""What an installation must keep to, judged on a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.fidelity.claim import Claim
from tools.install.measure import SYSTEMS
from tools.wheel import GLIBC
from tools.wheel.examine import SIZE_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.install.record import Image, Installed, Record, Sources, Step, Wheel

WHEEL_MAX_S = 360
VERDICT_MAX_S = 360
"""From a bare root to a verdict; the demonstration alone takes four minutes of it."""
HELP_MAX_S = 0.2
"""CPU of `--help` above Python's (STYLE.md)."""
IMAGE_MAX_S = 300
IMAGE_MAX_MB = 900

NAMES = (
    "wheel: time",
    "wheel: symbols",
    "wheel: size",
    *(f"{suite} {way}" for suite, way in SYSTEMS),
    "first verdict",
    "help",
    "nothing stays",
    "image: time",
    "image: size",
    "image: runs",
    "source distribution",
)


def judge(record: Record) -> list[Claim]:
    """The claims whose part was made, in the order of :data:`NAMES`."""
    judged = [] if record.wheel is None else _wheel(record.wheel)
    by_key = {installed.key: installed for installed in record.installed}
    there = [by_key[key] for suite, way in SYSTEMS if (key := f"{suite} {way}") in by_key]
    judged += [_steps(item.key, "every command does what it should", item.steps) for item in there]
    judged += _installed(there)
    judged += [] if record.image is None else _image(record.image)
    return judged + ([] if record.sources is None else [_sources(record.sources)])


def _wheel(wheel: Wheel) -> list[Claim]:
    allowed = ".".join(map(str, GLIBC))
    return [
        _timed("wheel: time", WHEEL_MAX_S, wheel.seconds, wheel.load, f" ({wheel.cpu_s:.0f} s of CPU)"),
        Claim("wheel: symbols", f"≤ GLIBC_{allowed}", f"GLIBC_{wheel.glibc}", _version(wheel.glibc) <= GLIBC),
        Claim(
            "wheel: size",
            f"≤ {SIZE_MAX_BYTES >> 20} MiB",
            f"{wheel.size_bytes / 2**20:.1f} MiB",
            wheel.size_bytes <= SIZE_MAX_BYTES,
        ),
    ]


def _timed(name: str, most_s: float, seconds: float, load: str, parts: str = "") -> Claim:
    """That something did not take longer, with what else the machine did."""
    return Claim(name, f"≤ {most_s:g} s", f"{seconds:.0f} s{parts}, load average {load}", seconds <= most_s)


def _version(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(".")))


def _steps(name: str, bar: str, steps: Sequence[Step]) -> Claim:
    """That all commands did what they should."""
    faults = tuple(
        f"{step.name}: `{step.command}`: exit code {step.code}: {step.said}" for step in steps if not step.holds
    )
    return Claim(name, bar, f"{len(steps) - len(faults)} of {len(steps)}", bool(steps) and not faults, faults)


def _installed(there: Sequence[Installed]) -> list[Claim]:
    judged = []
    for installed in there:
        if installed.verdict is not None:
            taken, parts = installed.verdict, f" ({installed.verdict.install_s:.0f} + {installed.verdict.demo_s:.0f})"
            judged.append(_timed("first verdict", VERDICT_MAX_S, taken.total_s, taken.load, parts))
    if costs := {installed.key: installed.help_cpu_s for installed in there if installed.help_cpu_s is not None}:
        worst = max(costs, key=lambda key: costs[key])
        judged.append(
            Claim("help", f"≤ {HELP_MAX_S:g} s of CPU", f"{costs[worst]:.2f} s ({worst})", costs[worst] <= HELP_MAX_S)
        )
    if left := {installed.key: installed.left for installed in there if installed.left is not None}:
        faults = tuple(f"{key}: {path}" for key, paths in left.items() for path in paths)
        judged.append(Claim("nothing stays", "`find` shows nothing", f"{len(faults)} files", not faults, faults))
    return judged


def _image(image: Image) -> list[Claim]:
    return [
        _timed("image: time", IMAGE_MAX_S, image.seconds, image.load),
        Claim("image: size", f"≤ {IMAGE_MAX_MB} MB", f"{image.size_mb:.0f} MB", image.size_mb <= IMAGE_MAX_MB),
        _steps("image: runs", "every command does what it should", image.steps),
    ]


def _sources(sources: Sources) -> Claim:
    return Claim("source distribution", "pip builds it, tests/cli pass", sources.tests, sources.holds)
