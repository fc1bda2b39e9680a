"""Makes the machine, does everything in it, and writes its page: ``python -m tools.machine``."""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.machine import preflight
from tools.machine import ROOT, image, installed, page, runs, volumes
from tools.machine.record import Record, Result, judge
from tools.machine.virtual import MEMORY_MIB, Machine
from tools.measured import code, ended, published, tried
from tools.wheel import examine

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim
    from tools.machine.step import Step

RESULTS = ROOT / "results" / "machine" / "record.json"
PAGE = ROOT / "docs" / "reference" / "machine.md"
DISK_BYTES = 6 << 30
"""The root twice (its tree and its disk), the wheels, and what the machine writes."""
STEPS: tuple[Step, ...] = (
    *installed.STEPS,
    runs.compare("null null"),
    runs.compare("gp3 gp3:iops=6000"),
    volumes.grows("ext4"),
    volumes.grows("xfs"),
    volumes.MAPPED,
    runs.KILLED,
    installed.GONE,
)


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.machine", description=__doc__)
    parser.add_argument("--release", choices=sorted(image.RELEASES), default="bookworm", help="of Debian [%(default)s]")
    parser.add_argument("--wheel", type=Path, help="install this file instead of that in dist/: writes no page")
    parser.add_argument("--accelerator", choices=("kvm", "tcg"), help="QEMU's [kvm where it works, else tcg]")
    parser.add_argument(
        "--image", metavar="DIR", type=Path, help="keep the disk in DIR, and start from one that is there"
    )
    parser.add_argument("--only", metavar="STEP", action="append", help="a trial of this step: writes no page")
    parser.add_argument("--list", action="store_true", help="print the steps")
    parser.add_argument("--page", action="store_true", help="do nothing: write the page from the latest record")
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    wanted = [step for step in STEPS if namespace.only is None or step.key in namespace.only]
    if namespace.list:
        print("\n".join(f"{step.key}: {step.did}" for step in wanted))
        return 0
    if namespace.page:
        return code(write(Record.require(RESULTS, "machine")))
    accelerators = (namespace.accelerator,) if namespace.accelerator else ("kvm", "tcg")
    measure = partial(
        collect,
        wanted,
        release=namespace.release,
        made=namespace.wheel,
        accelerators=accelerators,
        kept=namespace.image,
    )
    if namespace.only or namespace.wheel:
        return tried(RESULTS, lambda path: judge(measure(path), [step.key for step in wanted]))
    return code(write(measure(RESULTS)))


def collect(
    wanted: Sequence[Step],
    path: Path,
    *,
    release: str = "bookworm",
    made: Path | None = None,
    accelerators: tuple[str, ...] = ("kvm", "tcg"),
    kept: Path | None = None,
) -> Record:
    """Make the machine and do the steps that the record at ``path`` lacks; it grows with each. ``kept`` keeps the disk."""
    preflight.require_root("making the root of a virtual machine")
    image.require_programs()
    preflight.require_memory((MEMORY_MIB + 1024) << 20, "the virtual machine")
    with tempfile.TemporaryDirectory(prefix="pgdyno-machine-") as scratch:
        # A copy: `make wheel` may write another one while the machine is made.
        copy = Path(shutil.copy(made or image.wheel(), scratch))
        digest = hashlib.sha256(copy.read_bytes()).hexdigest()[:16]
        answer = Record(release=release, wheel=f"{copy.name}, sha256 {digest}")
        earlier = Record.load(path)
        if earlier is not None and earlier.resumes(answer):
            answer = earlier
            answer.forget_failed()
        there = {result.key for result in answer.results}
        left = [step for step in wanted if step.key not in there]
        if not left:
            return answer
        folder = (kept / f"{release}-{digest}" if kept else Path(scratch, "disk")).resolve()
        disk = image.Image.below(folder)
        if disk is None:
            folder.mkdir(parents=True, exist_ok=True)
            preflight.require_space(folder, DISK_BYTES, "the virtual machine")
            disk = image.make(copy, release, folder)
        with Machine(disk, Path(scratch), accelerators) as machine:
            answer.facts |= _facts(machine, copy)
            for step in left:
                _do(step, machine, answer)
                answer.save(path)
    order = [step.key for step in STEPS]
    answer.results.sort(key=lambda result: order.index(result.key))
    answer.save(path)
    return answer


def _facts(machine: Machine, made: Path) -> dict[str, str]:
    running = machine.running
    newest = ".".join(map(str, examine.examine(made).glibc))
    return running.facts | {
        "emulated by": f"{_qemu()}, {running.accelerator}; {os.cpu_count()} CPUs of the host",
        "booted in": f"{running.boot_s:.0f} s",
        "wheel": f"{made.name}, whose engine asks for GLIBC_{newest}",
    }


def _do(step: Step, machine: Machine, record: Record) -> None:
    begin = time.monotonic()
    came = step.run(machine)
    seconds = time.monotonic() - begin
    record.facts |= came.facts
    did = {"key": step.key, "did": step.did, "expected": step.expected}
    record.results.append(Result(**did, found=came.text, holds=came.holds, seconds=seconds))
    state = "holds" if came.holds else "DOES NOT HOLD"
    print(f"{step.key}: {state} ({seconds:.0f} s): {came.text}", file=sys.stderr, flush=True)


def _qemu() -> str:
    stdout = subprocess.run(["qemu-system-x86_64", "--version"], capture_output=True, text=True, check=True).stdout
    return stdout.splitlines()[0]


def write(record: Record) -> list[Claim]:
    """Judge a record, write its page, print the claims."""
    judged = judge(record, [step.key for step in STEPS])
    return published(PAGE, page.render(record, judged), judged)


if __name__ == "__main__":
    sys.exit(main())
