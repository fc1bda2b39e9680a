"""The reference's page on fidelity, from the points of a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import groupby
from statistics import median

from tools.fidelity import kinds, matrix
from tools.fidelity.claim import Claim
from tools.fidelity.measure import TICKS_PER_S
from tools.fidelity.point import Machine, Point, Side

LATENESS_NOTABLE = 0.02
"""Of all modelled time: what is measured of such a volume is wrong by at most this much."""
LARGE = ("types", "pairs")
"""Parts of more than a hundred points: the page has their claims, the record their points."""
NAMES = {
    "pgdyno": "pgdyno",
    "loop": "plain loop device",
    "blk-throttle": "kernel blk-throttle",
    "qemu": "QEMU storage daemon",
}

_HEAD = """# Fidelity

What emulated volumes were asked, what the model says, and what fio measured. `make bench ONLY=fidelity` measures all of it again and
writes this page. Every point, with its whole distribution, is kept as JSON in `results/fidelity/`, which is not in git; the claims are judged by all of
them, and the tables leave out the two largest parts (every type, every pair of settings).

- **asked**: the requests a second that the provisioned limits allow. Service time may keep a volume below it.
- **modelled**: the recorded requests put through the volume model again in virtual time by a host that takes no time and keeps the same
  number outstanding. What a volume of the catalogue would do.
- **measured**: fio (libaio, direct I/O) on the block device, from before the submission to after the completion.
- **error**: measured against modelled.
- **late**: requests released more than 5 % of their modelled latency after their time, by the daemon's own count. † marks a job that
  `pgdyno compare` would refuse for it: more than this host can carry.
"""


def render(machine: Machine, points: list[Point], claims: list[Claim], repeated: Sequence[str] = ()) -> str:
    """The page. ``repeated`` are the parts that were measured anew after the whole."""
    parts = [_HEAD, _where(machine, points), *_again(repeated), "## Claims\n", _claims(claims)]
    for name in (name for name in _PARTS if name not in LARGE):
        of_part = [point for point in points if point.cell.part == name]
        parts += [part(name, of_part)] if of_part else []
    return "\n".join(parts)


def part(name: str, points: list[Point]) -> str:
    """The page's section on one part, from its points."""
    title, text, table = _PARTS[name]
    return "\n".join([f"## {title}\n", f"{text}\n", table(points)])


def beyond_host(point: Point) -> bool:
    """Whether what was late weighs so much that the point says something of the host (:data:`LATENESS_NOTABLE`)."""
    daemon = point.daemon
    if daemon is None or point.modelled is None or daemon.requests == 0:
        return False
    return daemon.lateness_ns > LATENESS_NOTABLE * daemon.modelled_ns


def _where(machine: Machine, points: list[Point]) -> str:
    first, last = points[0].begin, points[-1].begin
    seconds = [second for point in points for second in point.seconds]
    stolen = sum(second.steal_ticks for second in seconds) / TICKS_PER_S
    length = sum(second.length_ns for second in seconds) / 1e9
    waited = sum(second.cpu_pressure_us for second in seconds) / 1e6
    again = sum(point.tries > 1 for point in points)
    paths = sorted(ns / 1e3 for p in points if p.daemon for ns in (p.daemon.path_read_ns, p.daemon.path_write_ns))
    return (
        f"{len(points)} points, {first:%Y-%m-%d %H:%M} to {last:%H:%M} UTC, on {machine.cores} cores ({machine.processor}),"
        f" {machine.memory_gib} GiB, Linux {machine.kernel}; {machine.fio}; {machine.qemu}; engine {machine.build_hash[:12]}.\n"
        f"The hypervisor took {stolen / machine.cores / length:.2%} of the CPU time"
        f" and some of it in {sum(second.steal_ticks > 0 for second in seconds)} of {len(seconds)} seconds;"
        f" {again} points were measured again for it. Some task, fio's and the daemon's among them, waited for a core"
        f" {waited / length:.0%} of the time."
        f" The path that pgdyno calibrates at attach and takes off cost {paths[0]:.0f} to {paths[-1]:.0f} µs"
        f" (half the time at most {median(paths):.0f}). {_AWAKE[machine.awake]}\n"
    )


def _again(repeated: Sequence[str]) -> list[str]:
    counts = Counter(repeated)
    times = ", ".join(f"`{part}` {'once' if count == 1 else f'{count} times'}" for part, count in counts.items())
    return [f"Measured anew, as whole parts, after the record had been judged: {times}.\n"] if counts else []


def _claims(claims: list[Claim]) -> str:
    rows = [[claim.name, claim.bar, claim.found, "yes" if claim.holds else "**no**"] for claim in claims]
    return _table(["claim", "bar", "found", "holds"], rows)


def _against_model(points: list[Point]) -> str:
    """Points of pgdyno, each volume under its own heading line."""
    parts = []
    for volume, group in groupby(sorted(points, key=_in_order), key=lambda point: point.cell.volume):
        header = ["job", "asked", "modelled", "measured", "error", "p50 ms", "error", "p99 ms", "error", "late"]
        parts += [f"`{volume}`\n", _table(header, [_row(point) for point in group])]
    return "\n".join(parts)


def _row(point: Point) -> list[str]:
    measured, modelled, job = point.measured, point.modelled, point.cell.job
    mark = " †" if beyond_host(point) else ""
    row = [f"{job.pattern} {job.mix} {job.block_kib} KiB × {job.depth}{mark}", _number(point.asked_iops)]
    row += [_number(modelled.iops if modelled else None), _number(measured.iops)]
    row += [_error(measured.iops, modelled.iops) if modelled else "–"]
    for percent in (50.0, 99.0):
        row += [_ms(measured, percent)]
        row += [_error(measured.percentile_ns(percent), modelled.percentile_ns(percent)) if modelled else "–"]
    return [*row, f"{point.daemon.late / point.daemon.requests:.1%}" if point.daemon and modelled else "–"]


def _of_types(points: list[Point]) -> str:
    """A line for each point, in the order in which they were measured."""
    header = [
        "volume",
        "job",
        "dilation",
        "asked",
        "modelled",
        "measured",
        "error",
        "p50 ms",
        "error",
        "p99 ms",
        "error",
    ]
    rows = []
    for point in points:
        job, text, modelled, measured, *latencies, late = _row(point)
        cell = point.cell
        shown = f"`{cell.volume}`" + (f", two on {cell.instance}" if cell.instance else "")
        close = "–" if point.paired is None else f"{point.paired.close_share:.2%}"
        rows.append([shown, job, str(cell.dilation), text, modelled, measured, *latencies, late, close])
    return _table([*header, "late", "within 5 %"], rows)


def _against_peers(points: list[Point]) -> str:
    """Each job with the model's line first."""
    rows = []
    for (volume, job), group in groupby(points, key=lambda point: (point.cell.volume, point.cell.job)):
        results = sorted(group, key=lambda point: list(NAMES).index(point.cell.world))
        model = next((point.modelled for point in results if point.modelled), None)
        rows.append([f"`{volume}`<br>{job}", "*model*", *_shape(model, results[0].asked_iops)] if model else [])
        rows += [["", NAMES[point.cell.world], *_shape(point.measured, point.asked_iops)] for point in results]
    return _table(["job", "", "IOPS", "of asked", "p1 ms", "p50 ms", "p99 ms"], [row for row in rows if row])


def _shape(side: Side, value: float | None) -> list[str]:
    error = _error(side.iops, value) if value else "–"
    return [_number(side.iops), error, *(_ms(side, percent) for percent in (1.0, 50.0, 99.0))]


def _paths(points: list[Point]) -> str:
    rows = []
    for job, group in groupby(points, key=lambda point: point.cell.job):
        for point in sorted(group, key=lambda point: list(NAMES).index(point.cell.world)):
            first = str(job) if point.cell.world == "pgdyno" else ""
            cpu = f"{point.daemon.cpu_ns_per_request / 1e3:.1f} µs" if point.daemon else "–"
            measured = point.measured
            throughput = f"{measured.mib_per_s:,.0f}"
            rows.append(
                [
                    first,
                    NAMES[point.cell.world],
                    _number(measured.iops),
                    throughput,
                    _us(measured, 50),
                    _us(measured, 99),
                    cpu,
                ]
            )
    return _table(["job", "", "IOPS", "MiB/s", "p50 µs", "p99 µs", "daemon CPU a request"], rows)


def _in_order(point: Point) -> tuple[int, str, str, int, int, int]:
    volume, job = point.cell.volume, point.cell.job
    index = matrix.VOLUMES.index(volume) if volume in matrix.VOLUMES else -1
    return (index, job.pattern, job.mix, job.block_kib, job.depth, point.cell.repetition)


def _table(header: list[str], rows: Iterable[list[str]]) -> str:
    lines = [header, ["---", *("---:" if _is_figure(name) else "---" for name in header[1:])], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _is_figure(name: str) -> bool:
    return name not in ("", "bar", "found", "holds")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:,.0f}"


def _error(value: float, wanted: float) -> str:
    error = value / wanted - 1
    return f"{error:+.2%}" if abs(error) < 0.1 else f"{error:+.0%}"


def _ms(side: Side, percent: float) -> str:
    return _figures(side.percentile_ns(percent) / 1e6)


def _us(side: Side, percent: float) -> str:
    return _figures(side.percentile_ns(percent) / 1e3)


def _figures(value: float) -> str:
    """Three figures, without an exponent."""
    return f"{value:,.0f}" if value >= 100 else f"{value:#.3g}"


_PEERS_TEXT = """One after the other on this host, over the same memory. pgdyno's volumes here are first come, first served, as
those limiters mean to be: a request takes depth / IOPS. blk-throttle limits reads and writes apart, so a mix is given its two shares."""
_PATH_TEXT = "The null volume beside a plain loop device and QEMU's daemon without limits, all moving data in memory."
_PAIRS_TEXT = f"""Every pair of values of any two of volume, pattern with mix, size and depth occurs (the full cross would take
hours); {matrix.SHORT_S} s each."""
_TYPES_TEXT = f"""Each type as it is by default, the largest of a family dilated, so that at most {kinds.IOPS_UNDILATED:,} requests or
{kinds.MIB_PER_S_UNDILATED:,} MiB a second are real; a dilated volume's figures are in its own time. Two volumes behind an instance share what it has.
**within 5 %**: single requests as fio timed them, each against its own modelled time."""

_ASLEEP_TEXT = """What a run sees with `world.cpus_awake = false`, or on a host that does not let idle CPUs be kept awake. On a virtual machine a halted CPU is woken by way of the hypervisor,
which is the host's part of the latency and not the volume's."""
_AWAKE = {
    True: "Idle CPUs polled for work ([why](../decision/0019-idle-cpus-poll.md)), but for the part that says otherwise.",
    False: "Idle CPUs could not be kept from halting on this machine.",
}

_PARTS = {
    "peers": ("The same limits under other throttles", _PEERS_TEXT, _against_peers),
    "path": ("The path without limits", _PATH_TEXT, _paths),
    "depth-1": ("One request at a time", "Service time and nothing else; three times each.", _against_model),
    "asleep": ("One request at a time, while idle CPUs may halt", _ASLEEP_TEXT, _against_model),
    "rate": ("A minute each", "The last one of gp3 has 10⁵ requests, one at a time.", _against_model),
    "types": ("Every type, arrays, an instance, dilation", _TYPES_TEXT, _of_types),
    "pairs": ("Every pair", _PAIRS_TEXT, _against_model),
}
