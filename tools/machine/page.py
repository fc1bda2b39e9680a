"""The reference's page on the machine: what it was, what was done in it, what came out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tools.machine.image import USER
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.fidelity.claim import Claim
    from tools.machine.record import Record

COMMAND = "make bench ONLY=machine"
INTRODUCTION = """
The wheel in a machine that is not a developer's: a virtual machine of Debian's packages with Debian's own kernel, systemd and control groups of version 2, and a
user who may use sudo. [tools/machine](../../tools/machine) makes it by one command, without mounting anything on the host, and boots it by QEMU from its kernel. The
wheel is installed in its root before the first boot, without a network; all else is done inside.

The machine is emulated where the host's KVM cannot run it. It is then so slow that runs may be invalid for its speed; what is shown here is what works, not a figure of a volume.
"""


def render(record: Record, judged: Sequence[Claim]) -> str:
    """The text of the page."""
    # The path is of the machine, and means nothing to a reader.
    judged = [replace(claim, found=claim.found.replace(f"/home/{USER}", "~")) for claim in judged]
    did = [[result.key, result.did, f"{result.seconds:.0f}"] for result in record.results]
    return "\n\n".join([
        f"# Another machine\n\n<!-- Written by `{COMMAND}` from tools/machine. -->",
        INTRODUCTION.strip(),
        "## The machine",
        md.table(["what", "which"], [[name, text] for name, text in record.facts.items()]),
        "## What came out",
        claims_table(judged),
        "## What was done\n\nSeconds include the host's other work.",
        md.table(["claim", "steps", "seconds"], did),
    ]) + "\n"  # fmt: skip
