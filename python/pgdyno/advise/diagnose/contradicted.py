"""What was said to be bought and cannot be: a volume, or an instance, that did far more than it can."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pgdyno.analysis.binding.evidence import Evidence, Second

from ...analysis.binding.device import ProvisionedVolume
from ...base.text import number, times
from .source import CLOUDWATCH, NVME, VolumeSource

BEYOND = 1.25
"""Times what was bought that no volume does for seconds, by bytes or by the provider's own count of operations."""
BEYOND_REQUESTS = 2.0
"""The same by the kernel's count of requests, of which a volume counts several in sequence as one."""
SECONDS_MIN = 5.0
"""For so long at least: a bucket of tokens, or two clocks, let more through for a moment."""


@dataclass(frozen=True)
class Contradiction:
    """One of ``--bought`` or ``--instance`` that is wrong."""

    flag: str
    """``--bought`` or ``--instance``."""
    role: str | None
    """The volume's; None of an instance."""
    spec: str
    seen: float
    unit: str
    """``IOPS`` or ``MiB/s``."""
    most: float
    """What was said to be bought has at most."""

    @property
    def title(self) -> str:
        """``--bought is wrong: ...``."""
        what = "the instance's volumes" if self.role is None else f"the {self.role} volume"
        return (
            f"{self.flag} is wrong: {what} did {number(self.seen)} {self.unit}, {times(self.seen / self.most)} times the"
            f" {number(self.most)} that {self.spec} has at most"
        )

    @property
    def action(self) -> str:
        """What it would have to be."""
        what = "an instance" if self.role is None else "a volume"
        return (
            f"nothing to buy: look up what this server has; it must be {what} with at least {number(self.seen)} {self.unit}"
            + (", or another device was measured than the one that was named" if self.role is not None else "")
        )


def contradictions_of(evidence: Evidence, sources: Sequence[VolumeSource], step_s: float) -> tuple[Contradiction, ...]:
    """Every volume, and the instance, that did far more than what was said to be bought can; ``step_s`` is the length of a second."""
    counted = {source.role for source in sources if source.flag in (CLOUDWATCH, NVME)}
    results = []
    for role, bought in evidence.given.bought.items():
        if role not in evidence.given.inferred:
            results += _of_volume(role, bought, evidence, step_s, by_provider=role in counted)
    results += _of_instance(evidence, step_s)
    return tuple(results)


def without(evidence: Evidence, wrong: Collection[Contradiction]) -> Evidence:
    """The evidence as if nothing had been said of what is wrong."""
    given = evidence.given
    roles = {contradiction.role for contradiction in wrong if contradiction.role is not None}
    bought = {role: volume for role, volume in given.bought.items() if role not in roles}
    instance = None if any(contradiction.role is None for contradiction in wrong) else given.instance
    return replace(evidence, given=replace(given, bought=bought, instance=instance))


def _of_volume(
    role: str, bought: ProvisionedVolume, evidence: Evidence, step_s: float, *, by_provider: bool
) -> list[Contradiction]:
    devices = [second.devices[role] for second in evidence.seconds if role in second.devices]
    sizes = [(device.mib_per_s, bought.used_throughput(device.mib_per_s)) for device in devices]
    counts = [(bought.counted_iops(device), bought.used_iops(device)) for device in devices]
    results = []
    for values, rate, unit, beyond in (
        (counts, bought.iops, "IOPS", BEYOND if by_provider else BEYOND_REQUESTS),
        (sizes, bought.mib_per_s, "MiB/s", BEYOND),
    ):
        seen = [value for value, used in values if used is not None and used >= beyond]
        if rate is not None and seen and len(seen) * step_s >= SECONDS_MIN:
            results.append(Contradiction("--bought", role, bought.spec, sum(seen) / len(seen), unit, rate.maximum))
    return results[:1]


def _of_instance(evidence: Evidence, step_s: float) -> list[Contradiction]:
    instance = evidence.given.instance
    if instance is None:
        return []
    seen = [mib for second in evidence.seconds if (mib := _mib_per_s(second)) >= BEYOND * instance.mib_per_s.maximum]
    if not seen or len(seen) * step_s < SECONDS_MIN:
        return []
    most = instance.mib_per_s.maximum
    return [Contradiction("--instance", None, instance.type, sum(seen) / len(seen), "MiB/s", most)]


def _mib_per_s(second: Second) -> float:
    return sum(device.mib_per_s for device in second.devices.values())
