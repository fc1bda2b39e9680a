"""Measures a cell: device, sampler, fio, and what the model says to the same requests."""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pgdyno.base import catalog, engine
from pgdyno.machine import volume
from tools.fidelity import device, fio, kinds, model, pairing, submit_log
from tools.fidelity.cell import READ_SHARE, Cell, Limits
from tools.fidelity.host import HostSampler, requests_of
from tools.fidelity.latency import Latency
from tools.fidelity.point import PERCENTILES, Daemon, Point, Side

if TYPE_CHECKING:
    from pathlib import Path

    from tools.fidelity.device import Bench, Device
    from tools.fidelity.host import Second

STEAL_DISTURBS = 0.01
"""A job from which the hypervisor took more than this share of the CPU is measured again: it says something about the
neighbours. What the emulator itself does wrong is no reason to try again."""
TRIES = 3
TICKS_PER_S = 100
BEGUN_POLL_S = 0.005
"""A tenth of the least that a bucket of a second would fill while fio starts."""


def measure(cell: Cell, bench: Bench, cores: int) -> Point:
    """Measure a cell, again (at most :data:`TRIES` times in all) while the hypervisor takes the CPU away.

    Of several tries that one stays from which it took least, whatever came out of it.
    """
    tries: list[Point] = []
    while len(tries) < TRIES:
        tries.append(_once(cell, bench))
        if stolen_share(tries[-1].seconds, cores) <= STEAL_DISTURBS:
            break
    quietest = min(tries, key=lambda point: stolen_share(point.seconds, cores))
    return quietest.model_copy(update={"tries": len(tries)})


def stolen_share(seconds: list[Second], cores: int) -> float:
    """Share of the machine's CPU time that the hypervisor gave to others."""
    length_s = sum(second.length_ns for second in seconds) / 1e9
    return sum(second.steal_ticks for second in seconds) / TICKS_PER_S / cores / length_s if length_s else 0.0


def _once(cell: Cell, bench: Bench) -> Point:
    limits = Limits.of(dict(catalog.resolve(cell.volume).document))
    log = bench.folder / "submit.log" if models(cell) else None
    latencies = bench.folder / "latency" if pairs(cell) else None
    begin = datetime.now(UTC)
    with ExitStack() as stack:
        enter_context = stack.enter_context(_open(cell, bench, limits, log))
        attached_cpu_ns = enter_context.volume.stats()["counters"]["daemon_cpu_ns"] if enter_context.volume else 0
        with HostSampler(enter_context.path) as sampler, _emptied(enter_context):
            judged = fio.run(
                enter_context.filename, cell.job, seed=_seed(cell), launcher=enter_context.launcher, log=latencies
            )
        value = _asked(enter_context, limits, cell)
        counted = _counted(enter_context, attached_cpu_ns)
    modelled, replayed, paired = None, (0, 0), None
    if log is not None:
        predicted = model.predict(log, cell.job, PERCENTILES, cell.dilation)
        if latencies is not None:
            paired = pairing.paired(submit_log.read(log), fio.read_log(latencies), cell.dilation)
        replayed = model.identical(log)
        modelled = _side(predicted)
        log.unlink()
    daemon = None
    if counted is not None:
        daemon = counted.model_copy(update={"replay_identical": replayed[0], "replay_grants": replayed[1]})
    return Point(
        cell=cell,
        begin=begin,
        asked_iops=value,
        measured=_side(judged, cell.dilation),
        modelled=modelled,
        daemon=daemon,
        paired=paired,
        seconds=sampler.seconds,
    )


def models(cell: Cell) -> bool:
    """Whether there is a model to hold it against: ``null`` is as fast as the host, and a log is one volume's."""
    return cell.world == "pgdyno" and cell.volume != "null" and cell.instance is None


def pairs(cell: Cell) -> bool:
    """Whether each request is held against its own modelled time: those that wait for each other come in one order."""
    return models(cell) and cell.part == kinds.PART and cell.job.depth == 1


def _asked(device: Device, limits: Limits, cell: Cell) -> float | None:
    """Requests a second that the limits allow: those of the volume, or of both and their instance."""
    value = limits.asked_iops(cell.job)
    if device.volume is None or device.other is None or value is None:
        return value
    return min(2 * value, float(device.volume.facts["instance_limits"]["iops"]["baseline_per_s"]))


def _open(cell: Cell, bench: Bench, limits: Limits, log: Path | None) -> device.Opened:
    if cell.instance is not None:
        return device.pair(bench, cell.volume, cell.instance, seed=_seed(cell))
    if cell.world == "pgdyno":
        return device.pgdyno(bench, cell.volume, seed=_seed(cell), submit_log=log, dilation=cell.dilation)
    if cell.world == "blk-throttle":
        return device.blk_throttle(bench, limits, READ_SHARE[cell.job.mix])
    if cell.world == "qemu":
        return device.qemu(bench, limits)
    return device.plain_loop(bench)


@contextmanager
def _emptied(device: Device) -> Iterator[None]:
    """Take away what the volume's buckets have saved as soon as the job has begun, so that it is the provisioned rate
    that is measured. Before, they would fill again while fio starts, and how much depends on the host.
    """
    attached = device.volume
    if attached is None:
        yield
        return
    before, ended = requests_of(device.path), threading.Event()

    def empty() -> None:
        while requests_of(device.path) == before:
            if ended.wait(BEGUN_POLL_S):
                return
        for tested in filter(None, (attached, device.other)):
            _credit(tested)
        if device.other is not None:
            _credit(attached, "--instance")

    thread = threading.Thread(target=empty, name="empty-buckets", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _credit(attached: volume.AttachedVolume, *options: str) -> None:
    words = ["volume", "credit", attached.name, *options, "--percent", "0", "--state-dir", str(attached.state_dir)]
    engine.run_json(words)


def _seed(cell: Cell) -> int:
    """The same cell asks for the same blocks and draws the same service times whenever it is measured."""
    return zlib.crc32(cell.key.encode())


def _side(measured: fio.Measured | model.Modelled, dilation: int = 1) -> Side:
    """As it was in the time of a volume that is ``dilation`` times slower."""
    exact = measured.exact_ns if isinstance(measured, model.Modelled) else None
    bins = [(value // dilation, count) for value, count in measured.latency.bins()]
    return Side(iops=measured.iops * dilation, mib_per_s=measured.mib_per_s * dilation, latency_ns=bins, exact_ns=exact)


def _counted(device: Device, attached_cpu_ns: int) -> Daemon | None:
    """The daemon's counters at the end of the job; the volume was attached for this job alone."""
    if device.volume is None:
        return None
    stats = device.volume.stats()
    counters = stats["counters"]
    requests = counters["read_ops"] + counters["write_ops"]
    path = device.volume.facts["base_overhead_8k"]
    histograms = stats["histograms"]
    lateness = Latency.of_bins(
        (value, count) for op in ("read", "write") for value, count in histograms[f"{op}_lateness_ns"]
    )
    return Daemon(
        requests=requests,
        late=counters["late_read_ops"] + counters["late_write_ops"],
        overrun=counters["overrun_ops"],
        lateness_ns=counters["read_lateness_ns"] + counters["write_lateness_ns"],
        modelled_ns=counters["read_modelled_ns"] + counters["write_modelled_ns"],
        lateness_p99_ns=lateness.percentile_ns(99),
        cpu_ns_per_request=(counters["daemon_cpu_ns"] - attached_cpu_ns) / max(1, requests),
        path_read_ns=path["read_ns"],
        path_write_ns=path["write_ns"],
        replay_identical=0,
        replay_grants=0,
    )
