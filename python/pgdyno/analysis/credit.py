"""Exhaustion of a volume's credits or an instance's reserve: before it and after it a run has two limits.

A gp2 volume of 100 GiB does 3,000 IOPS while it has credits and 300 without them. A mean over both describes neither, and
how much of each is in it depends on how long the run was. So a run is divided where credits went or came back,
and whether it was steady is asked of the longest part.

What is left of them is read where it was sampled (an emulated volume counts it, as CloudWatch does). Of another device it
follows from its rate: credits were spent, then the rate was held at what is left without them, and as many requests waited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from pgdyno.analysis.finding import CheckResult

from ..base.specification import Rate, VolumeSpec
from ..base.text import duration, number
from ..results import StoredRun
from .binding.device import AT_LIMIT, LEFT_ABOVE, ProvisionedVolume
from .figures import CounterSamples, device_counters, of_role, volume_roles, volume_spec

if TYPE_CHECKING:
    import numpy as np

REGIME_S_MIN = 5
"""A shorter stretch is a pause in which a little was earned, or a sample that came late, and belongs to its neighbours."""
EMPTY_S = 0.5
"""A second that begins with no more than goes in half of one, at the most that they allow, is without them for most of it."""
HELD_MIN = 0.5
"""Share of a second in which requests waited for the limit. Below it the credits were not missed."""
QUEUE_KEPT = 0.5
"""Share of the queue while credits were spent: below it the rate fell because less was asked for."""
LASTS_MAX_S = 86_400.0
"""Credits that last longer than a day of a load are earned again in its quiet hours."""
RESERVE_SPENT_PPM_PER_S = 1e6 / 1800
"""Millionths of an instance's reserve that its maximum spends in a second: it lasts 30 minutes (docs/concept/volume/instance_limit)."""
_LEAST = "burst_balance_ppm"
"""Counter of an array: the balance of the member that has the least, in millionths of what it keeps at most."""
_NS = 1_000_000_000
_MIB = float(1 << 20)
_PPM = 1e6


@dataclass(frozen=True)
class Regime:
    """Neighbouring seconds of a measure phase with the same limits."""

    begin_s: int
    end_s: int
    """One after the last second."""
    gone: tuple[str, ...]
    """The credits that were gone, in words; empty while all were there."""
    tps: float
    """Transactions per second in it."""

    @property
    def words(self) -> str:
        """``with credits``, or without which."""
        return f"without {' and '.join(self.gone)}" if self.gone else "with credits"


@dataclass(frozen=True)
class Credit:
    """The credits behind a run."""

    regimes: tuple[Regime, ...] = ()
    """They follow each other and make up the whole seconds of the phase; a single one where nothing changed."""
    lasts: tuple[tuple[str, float], ...] = ()
    """(credits in words, seconds that they would have lasted if the load had gone on) where they were being spent."""


@dataclass(frozen=True)
class CreditUse:
    """One kind of credits over the seconds of a run."""

    name: str
    gone: tuple[bool, ...]
    lasts_s: float | None = None


def credit_of(run: StoredRun, tps: np.ndarray[Any, Any]) -> Credit:
    """The credits of a recorded run; ``tps`` are the transactions of each of its whole seconds."""
    import numpy as np

    if not len(tps):
        return Credit()
    edges = run.record.measure.begin_ns + np.arange(len(tps) + 1, dtype=np.int64) * _NS
    seen = [*_of_volumes(run, edges), *_of_instance(run, edges)]
    return Credit(regimes(seen, tps), tuple((use.name, use.lasts_s) for use in seen if use.lasts_s is not None))


def regimes(seen: Sequence[CreditUse], tps: np.ndarray[Any, Any]) -> tuple[Regime, ...]:
    """The seconds divided where any credits went or came back."""
    gone = [tuple(use.name for use in seen if use.gone[second]) for second in range(len(tps))]
    regimes: list[Regime] = []
    for names, members in groupby(gone):
        begin = regimes[-1].end_s if regimes else 0
        end = begin + len(list(members))
        regimes.append(Regime(begin, end, names, float(tps[begin:end].mean())))
    return tuple(regimes)


def credit_findings(credit: Credit, tps: float, per_second: str = "transactions per second") -> Iterator[CheckResult]:
    """What a reader must know of them; ``tps`` is the run's figure, which counts ``per_second``. Nothing where no credits were spent."""
    check, regimes = "credits", credit.regimes
    if len(regimes) > 1:
        parts = [
            f"{number(regime.tps)} in seconds {regime.begin_s + 1} to {regime.end_s}, {regime.words}"
            for regime in regimes
        ]
        figure = f"{'; '.join(parts)}: the run's {number(tps)} {per_second} are a mean over different limits"
        yield CheckResult(check, "warn", figure)
    elif regimes and regimes[0].gone:
        yield CheckResult(check, "ok", f"every figure is {regimes[0].words}")
    for name, seconds in credit.lasts:
        yield CheckResult(
            check, "warn", f"{name} would be gone after another {duration(seconds)}: every figure is with them"
        )


def settled(gone: Sequence[bool]) -> tuple[bool, ...]:
    """The same without stretches shorter than :data:`REGIME_S_MIN`, the shortest first."""
    runs = [(value, len(list(members))) for value, members in groupby(gone)]
    while len(runs) > 1:
        place = min(range(len(runs)), key=lambda at: runs[at][1])
        value, length = runs[place]
        if length >= REGIME_S_MIN:
            break
        # Its neighbours have the other value, so that the three become one.
        first, last = max(0, place - 1), min(len(runs), place + 2)
        runs[first:last] = [(not value, sum(count for _, count in runs[first:last]))]
    return tuple(value for value, length in runs for _ in range(length))


def _of_volumes(run: StoredRun, edges: np.ndarray[Any, Any]) -> Iterator[CreditUse]:
    for role in volume_roles(run):
        spec = volume_spec(run, role)
        # Most volumes have none; the rest of their specification need not be read.
        bought = ProvisionedVolume.of(spec) if any((spec.get("burst") or {}).values()) else None
        if bought is None:
            continue
        counters, volume = CounterSamples.of(of_role(run.table("probe/volume"), role)), VolumeSpec.of(spec)
        kinds = (("IOPS", bought.iops, volume.charged_iops, "io_credits", 1.0),
                 ("throughput", bought.mib_per_s, volume.charged_bytes, "throughput_credits_bytes", _MIB))  # fmt: skip
        bursting = [kind for kind in kinds if kind[1] is not None and kind[1].bursts]
        for limit, rate, each, balance, unit in bursting:
            assert rate is not None
            name = f"the {role} volume's {limit} credits"
            waited = f"exceeded_{limit.lower()}_ns"
            result = None
            if volume.columns * volume.copies > 1 and len(bursting) == 1 and each.bursts:
                # The members of an array spend at different rates, a remote copy by writes alone; the first that has none left holds
                # up the array.
                result = recorded(name, counters, _LEAST, waited, _PPM / each.steady_seconds, edges)
            if result is None:
                # The balance is a sum over all volumes, also those with the same content.
                spent_per_s = volume.copies * (rate.maximum - rate.sustained) * unit
                result = recorded(name, counters, balance, waited, spent_per_s, edges)
            if result is None:
                result = inferred(name, device_counters(run, role), limit, rate, edges)
            if result is not None:
                yield result


def _of_instance(run: StoredRun, edges: np.ndarray[Any, Any]) -> Iterator[CreditUse]:
    table = run.table("probe/instance")
    if not table.num_rows:
        return
    counters = CounterSamples.of(table)
    for limit in ("IOPS", "throughput"):
        balance, waited = f"{limit.lower()}_balance_ppm", f"exceeded_{limit.lower()}_ns"
        name = f"the instance's reserve of {limit}"
        use = recorded(name, counters, balance, waited, RESERVE_SPENT_PPM_PER_S, edges)
        if use is not None:
            yield use


def recorded(
    name: str, counters: CounterSamples, balance: str, waited: str, spent_per_s: float, edges: np.ndarray[Any, Any]
) -> CreditUse | None:
    """By what was sampled of the ``balance``; None where it was not, or where there is none.

    ``waited`` counts the time in which requests waited for the limit, ``spent_per_s`` is what goes of the balance at most.
    """
    import numpy as np

    if not {balance, waited} <= counters.columns.keys() or not counters.covers(int(edges[0]), int(edges[-1])):
        return None
    left = _at(counters, balance, edges)
    if np.isnan(left).any():
        return None
    held = np.diff(_at(counters, waited, edges)) >= HELD_MIN * _NS
    gone = settled(((left[:-1] < EMPTY_S * spent_per_s) & held).tolist())
    return CreditUse(name, gone, None if any(gone) else _lasts(left))


def inferred(
    name: str, device: CounterSamples, limit: str, rate: Rate, edges: np.ndarray[Any, Any]
) -> CreditUse | None:
    """By the device's rate; None where it was not sampled, or credits were never seen to be spent."""
    import numpy as np

    counted, unit = (("reads", "writes"), 1.0) if limit == "IOPS" else (("read_bytes", "write_bytes"), _MIB)
    needed = {*counted, "weighted_time_ms"}
    if not needed <= device.columns.keys() or not device.covers(int(edges[0]), int(edges[-1])):
        return None
    read, written = (np.diff(_at(device, column, edges)) for column in counted)
    used = (read + written) / unit
    queue = np.diff(_at(device, "weighted_time_ms", edges)) / 1e3
    spending = used > LEFT_ABOVE * rate.sustained
    if int(spending.sum()) < REGIME_S_MIN:
        return None
    gone = (used >= AT_LIMIT * rate.sustained) & ~spending & (queue >= QUEUE_KEPT * np.median(queue[spending]))
    gone[: int(np.argmax(spending))] = False
    return CreditUse(name, settled(gone.tolist()))


def _lasts(left: np.ndarray[Any, Any]) -> float | None:
    """How long the last balance would have lasted if it had gone on to fall as it did; None where it hardly fell."""
    spent_per_s = float(left[0] - left[-1]) / (len(left) - 1)
    if spent_per_s <= 0:
        return None
    lasts_s = float(left[-1]) / spent_per_s
    return lasts_s if lasts_s <= LASTS_MAX_S else None


def _at(counters: CounterSamples, name: str, edges: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A counter at several instants (ns): linear between samples, the nearest sample outside of them."""
    import numpy as np

    # Relative to the first sample, because nanoseconds since boot lose their last digits in a double.
    base = counters.t_ns[0]
    array: np.ndarray[Any, Any] = np.interp(
        (edges - base).astype(np.float64), (counters.t_ns - base).astype(np.float64), counters.columns[name]
    )
    return array
