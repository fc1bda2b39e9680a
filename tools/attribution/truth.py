"""Whether a run was limited by what was meant to limit it: by the emulator's own account, which the verdict never sees."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pgdyno.analysis.arm import ArmSummary
    from tools.attribution.scenarios import Scenario

HELD_MIN = 0.5
"""Share of the time in which requests waited for the limit: less, and something else bound as often."""
FREE_MAX = 0.25
"""Share of the time above any limit of a volume or the instance, where another limit was meant to bind."""
CONTROL_MIN = 1.25
"""Times the transactions without the limit: it must have cost a fifth of them."""


def refuted(scenario: Scenario, arms: tuple[ArmSummary, ...]) -> str | None:
    """Why the run is not labelled as it was meant, or None. The second arm is the control, where there is one."""
    arm = arms[0]
    if not arm.valid and scenario.truth != "harness":
        return f"the run is invalid: {arm.why_invalid[0]}"
    held, other = _held(scenario, arm)
    if held is not None and held < HELD_MIN:
        return f"requests waited for the limit in {held:.0%} of the time"
    if held is None and scenario.control is None and other > FREE_MAX:
        return f"requests waited for another limit in {other:.0%} of the time"
    if held is not None and other > held:
        return f"another limit held {other:.0%} of the time, this one {held:.0%}"
    if scenario.control is not None and len(arms) > 1:
        ratio = arms[1].headline.mean / arm.headline.mean if arm.headline.mean else 0.0
        if ratio < CONTROL_MIN:
            return f"without it there are {ratio:.2f} times the transactions"
    return None


def _held(scenario: Scenario, arm: ArmSummary) -> tuple[float | None, float]:
    """Share of the time above the limit that was meant (None where it is no device's), and above the most of all others."""
    of_volumes = {
        (role, limit): share for role, volume in arm.volumes.items() for limit, share in volume.time_above_limit.items()
    }
    of_instance = arm.instance.time_above_limit if arm.instance is not None else {}
    meant = {"volume_iops": "iops", "burst_bucket": "iops", "volume_throughput": "throughput"}.get(scenario.truth)
    instance = max(of_instance.values(), default=0.0)
    if scenario.truth == "instance_bandwidth":
        return instance, max(of_volumes.values(), default=0.0)
    if meant is None:
        return None, max([instance, *of_volumes.values()])
    held = max((share for (_, limit), share in of_volumes.items() if limit == meant), default=0.0)
    others = [share for (_, limit), share in of_volumes.items() if limit != meant]
    return held, max([instance, *others])
