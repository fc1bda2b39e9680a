"""The reference's page on several hosts: the claims on what was measured, and the figures."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from pgdyno.analysis.statistics import Estimate, ratio_interval
from tools.fidelity.claim import Claim
from tools.hosts.record import RESULTS, ROOT
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from tools.hosts.record import Kills, Part, Record

PAGE = ROOT / "docs" / "reference" / "hosts.md"
OPEN = "300 transactions a second"
CLOSED = "closed loop, a commit takes 10 ms"
BUSY = "closed loop, both cores busy"
BARS = {OPEN: (0.99, 1.01), CLOSED: (0.95, 1.05)}
"""Load -> where the interval of the ratio must lie. None for :data:`BUSY`: see :func:`_beside`."""
PAIRS_MIN = 8
STARTS = 200
TOGETHER_MS = 1.0
ESTIMATES = 1_000
INSIDE_SHARE = 0.99
KILLS = 60
ENDS_S = 10.0
NUMBER = "a number"
"""What a run must not become when something of it is killed while its load lasts."""
ENDED = ("an error", "an invalid run")
"""What it may become."""
NOTHING = "nothing"
"""What it becomes when the one that asks is killed."""
SPREAD_KILLS = 20
WORKER_SHARE_MAX = 0.01
"""Of a core, beside the driver while it measures."""
PREPARE_S_MAX = 2.0
"""From nothing to the instant that can be given, with 200 clients."""
_NOT_YET = "not measured"
_PARTIAL = "**This record is partial, or a claim does not hold**: one that was measured less often than its bar says does not.\n"

_HEAD = """# Several hosts, measured

<!-- Written by `make bench ONLY=hosts` from tools/hosts. -->

The hosts are network namespaces of one machine, each behind a veth, and time namespaces whose clocks are up to a day apart. **On two cores nothing is shown to scale.**
[Several hosts](../guide/hosts.md) says how to set them up, [several drivers](../concept/together.md) how they come to one record. `make bench ONLY=hosts` measures all of it,
`make bench ONLY=hosts/test_equal.py` one part; one that was interrupted goes on. The record stays as JSON in `results/hosts/`.

- **Four drivers over one**: TPC-B-like at scale 16, 16 clients on four threads: on the driver of one host, and on four drivers of two hosts, one after the other in turns.
  PostgreSQL's files are in memory; vacuum and checkpoint are made before each run and not in it, and the first run is not counted. At a rate both schedule the same transactions,
  and commits are not waited for. In the closed loop PostgreSQL waits 10 ms before it writes a commit (`commit_delay`), as a volume would: then its answers limit the load, as they
  do where drivers have hosts of their own. It needs a machine that does nothing else.
- **Beginnings**: 300 transactions a second by four drivers, whose clocks are 0 s, 1 h, 14 h and a day ahead. What each says of its lateness is put on the true clock. It needs
  a machine that does nothing else, too: a thread that gets no core begins late.
- **Clocks**: what each estimate says it may be off by, beside what it is off by.
- **Kills**: a run of two seconds on two hosts, of which something is killed at a moment drawn from the five seconds after it begins to prepare. Kills that met nothing are not
  counted. `pgdyno doctor --clean` then runs for each host's state directory; a killed process's own directory in memory, which that removes, is not counted.
- **Experiments**: 12 arms in 90 replicates with made-up figures over three hosts, resumed until all is there, and compared with the same experiment of one host.
"""


def keep(record: Record, results: Path = RESULTS, to: Path = PAGE) -> None:
    """Save the record and write its page."""
    record.save(results)
    to.write_text(render(record), encoding="utf-8")


def judge(record: Record) -> list[Claim]:
    """All claims."""
    return [
        *(equal(name, record) for name in BARS),
        starts(record),
        clocks(record),
        *kills(record),
        *spread_kills(record),
        *cost(record),
    ]


def equal(name: str, record: Record) -> Claim:
    """Four drivers do what one does."""
    low, high = BARS[name]
    title, bar = f"{name}: four drivers over one", f"{low} to {high}, {PAIRS_MIN} pairs or more"
    ratio = _ratio(name, record)
    if ratio is None:
        return Claim(title, bar, _NOT_YET, holds=False)
    return Claim(title, bar, _estimate(ratio), _inside(ratio, name) and ratio.n >= PAIRS_MIN)


def starts(record: Record) -> Claim:
    """Drivers begin together."""
    name, bar = (
        "four drivers begin together, by the true offsets of their clocks",
        f"within {TOGETHER_MS:g} ms in {STARTS} starts",
    )
    apart_ms = sorted(record.starts.spread_ms) if record.starts else []
    if not apart_ms:
        return Claim(name, bar, _NOT_YET, holds=False)
    late = sum(ms > TOGETHER_MS for ms in apart_ms)
    result = (
        f"{late} of {len(apart_ms)} later; median {apart_ms[len(apart_ms) // 2]:.3f} ms, largest {apart_ms[-1]:.3f} ms"
    )
    if record.starts and record.starts.woke_late_ms:
        result += f"; the latest thread woke {max(record.starts.woke_late_ms):.3f} ms after its timer"
    return Claim(name, bar, result, not late and len(apart_ms) >= STARTS)


def clocks(record: Record) -> Claim:
    """Offsets of clocks are known as well as is said."""
    clocks = record.clocks.values()
    name, bar = "offsets of clocks", f"{INSIDE_SHARE:.0%} of {ESTIMATES:,} estimates off by no more than they say"
    if not clocks:
        return Claim(name, bar, _NOT_YET, holds=False)
    estimates, off = sum(clock.estimates for clock in clocks), sum(clock.off for clock in clocks)
    inside = all(clock.off <= (1 - INSIDE_SHARE) * clock.estimates for clock in clocks)
    return Claim(name, bar, f"{off} of {estimates:,} off by more", estimates >= ESTIMATES and inside)


def kills(record: Record) -> list[Claim]:
    """Whatever is killed, a run ends soon, without a number and without leaving anything."""
    names = (
        "a kill leaves no number",
        "a run ends after a kill",
        "`pgdyno doctor --clean` on the hosts after each kill",
    )
    bars = (f"0 in {KILLS} kills", f"within {ENDS_S:g} s", "finds nothing")
    kills = record.kills
    if kills is None or not kills.kills:
        return [Claim(name, bar, _NOT_YET, holds=False) for name, bar in zip(names, bars, strict=True)]
    whole = len(kills.kills) >= KILLS
    numbers = sum(kill.became == NUMBER for kill in kills.kills)
    slowest = max(kills.kills, key=lambda kill: kill.took_s)
    left = [what for kill in kills.kills for what in kill.left]
    return [
        Claim(names[0], bars[0], f"{numbers} in {len(kills.kills)}", whole and not numbers),
        Claim(
            names[1],
            bars[1],
            f"at most {slowest.took_s:.1f} s ({slowest.what}: {slowest.became})",
            whole and slowest.took_s <= ENDS_S,
        ),
        Claim(names[2], bars[2], f"{len(left)} things", whole and not left, tuple(left[:5])),
    ]


def spread_kills(record: Record) -> list[Claim]:
    """An experiment that is spread survives kills, wherever the hosts are."""
    bar, kills = f"all replicates whole after {SPREAD_KILLS} kills", record.spread_kills
    if not kills:
        return [Claim("an experiment on several hosts", bar, _NOT_YET, holds=False)]
    return [
        Claim(
            f"an experiment on several hosts, {where}",
            bar,
            f"{kill.replicates} whole, {kill.broken} kept and not paired, after {sum(kill.kills.values())} kills",
            sum(kill.kills.values()) >= SPREAD_KILLS and kill.replicates > 0 and not kill.left,
            tuple(kill.left[:5]),
        )
        for where, kill in kills.items()
    ]


def cost(record: Record) -> list[Claim]:
    """What hosts take."""
    names = ("a worker beside its driver while it measures", "200 clients on two hosts are ready")
    bars = (f"at most {WORKER_SHARE_MAX:.0%} of a core", f"within {PREPARE_S_MAX:g} s")
    cost = record.cost
    if cost is None:
        return [Claim(name, bar, _NOT_YET, holds=False) for name, bar in zip(names, bars, strict=True)]
    return [
        Claim(names[0], bars[0], f"{cost.worker_share:.2%} of a core", cost.worker_share <= WORKER_SHARE_MAX),
        Claim(names[1], bars[1], f"after {cost.prepared_s:.2f} s", cost.prepared_s <= PREPARE_S_MAX),
    ]


def render(record: Record) -> str:
    """The page."""
    judged = judge(record)
    missing = "" if all(claim.holds for claim in judged) else _PARTIAL
    where = f"On {record.cores} cores, Linux {record.kernel}.\n"
    parts = [_HEAD, missing, where, claims_table(judged), beside(record), "\n## Parts\n", _parts(record)]
    parts += ["\n## Pairs\n", _pairs(record)] * bool(record.equal)
    if record.clocks:
        parts += ["\n## Clocks\n", _clocks(record)]
    if record.kills:
        parts += ["\n## Kills\n", _kills(record.kills)]
    if record.cost:
        parts.append(
            f"\nBeside a load, {record.cost.wire_kib_per_s:.1f} KiB/s crossed the network from and to each host."
        )
    return "\n".join([*(part for part in parts if part), ""])


def beside(record: Record) -> str:
    """The closed loop that the machine limits, which no bar is for; empty where it was not measured."""
    ratio = _ratio(BUSY, record)
    if ratio is None:
        return ""
    low, high = BARS[CLOSED]
    return (
        f"\nA closed loop in which commits are not waited for takes both cores: four drivers over one {_estimate(ratio)}, "
        f"which is {'' if _inside(ratio, CLOSED) else '**not** '}inside {low} to {high}.\n"
        "It has no bar of its own. All hosts are on these two cores, so what the workers of four drivers take beside them is missing in\n"
        "the server, and single runs scatter by some per cent."
    )


def _ratio(name: str, record: Record) -> Estimate | None:
    """Of a load, with its interval; None before two pairs."""
    pairs = record.equal[name].pairs if name in record.equal else []
    return ratio_interval(pairs) if len(pairs) > 1 else None


def _inside(ratio: Estimate, name: str) -> bool:
    """Whether the whole interval lies between the bars of a load."""
    low, high = BARS[name]
    return ratio.low is not None and ratio.high is not None and low <= ratio.low and ratio.high <= high


def _estimate(ratio: Estimate) -> str:
    return f"{ratio.mean:.4f} ({ratio.low:.4f} to {ratio.high:.4f}), {ratio.n} pairs"


def _parts(record: Record) -> str:
    parts: dict[str, Part | None] = {
        **record.equal,
        "beginnings": record.starts,
        **{f"clocks, {way}": clock for way, clock in record.clocks.items()},
        "kills": record.kills,
        **{f"kills of experiments, {where}": spread_kill for where, spread_kill in record.spread_kills.items()},
        "cost": record.cost,
    }
    rows = [
        [name, f"{part.begin:%Y-%m-%d %H:%M} UTC", part.engine, f"{part.load_average_max:.1f}"]
        for name, part in parts.items()
        if part is not None
    ]
    return md.table(["part", "begun", "engine", "largest load average, its own load in it"], rows)


def _pairs(record: Record) -> str:
    rows = [
        [name, f"{four:,.1f}", f"{item:,.1f}", f"{four / item:.4f}"]
        for name, part in record.equal.items()
        for four, item in part.pairs
    ]
    return md.table(["load", "four drivers, transactions/s", "one", "ratio"], rows)


def _clocks(record: Record) -> str:
    rows = [
        [way, f"{clock.estimates:,}", f"{clock.off}", f"{clock.error_us_max:,.0f}", f"{clock.uncertainty_us_max:,.0f}"]
        for way, clock in record.clocks.items()
    ]
    return md.table(
        ["between the clocks", "estimates", "off by more than said", "largest error, µs", "largest said, µs"], rows
    )


def _kills(kills: Kills) -> str:
    kinds = sorted({kill.what for kill in kills.kills})
    became = sorted({kill.became for kill in kills.kills})
    rows = []
    for kind in kinds:
        of = [kill for kill in kills.kills if kill.what == kind]
        counts = Counter(kill.became for kill in of)
        took = max(kill.took_s for kill in of)
        rows.append([kind, *(str(counts[text]) for text in became), f"{took:.1f}"])
    return md.table(["killed", *became, "slowest end, s"], rows)
