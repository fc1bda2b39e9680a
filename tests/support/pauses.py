"""What a pause of its data's volume leaves in a run: of the driver, of the volume, and in the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.compare import summarise
from pgdyno.analysis.figures import volume_counters
from pgdyno.report.page import html
from pgdyno.report.terminal import table

if TYPE_CHECKING:
    from pgdyno.analysis.series import Event
    from pgdyno.results import StoredRun

SETTLED_S = 0.5
"""What was granted before a pause ends as it was said: within milliseconds, and later where this machine is busy."""


def assert_paused(run: StoredRun, pause: Event, seconds: float) -> None:
    """While the volume was paused no transaction and no request ended and the queue was not empty; afterwards transactions go on, and those
    that waited have waited for all of it. The report says what happened.
    """
    measure_ns = run.record.measure.begin_ns
    begin_ns = measure_ns + round((pause.end_s + SETTLED_S) * 1e9)
    end_ns = measure_ns + round((pause.begin_s + seconds) * 1e9)

    driver = run.table("workload/throughput")
    rows_begin_ns, rows_end_ns = (driver[name].to_numpy() for name in ("t_begin_ns", "t_end_ns"))
    ended = driver["transactions"].to_numpy() + driver["failed"].to_numpy()
    meanwhile = ended[(rows_begin_ns >= begin_ns) & (rows_end_ns <= end_ns)]
    assert len(meanwhile) > 0, f"the pause began {pause.seconds:g} s late"
    assert meanwhile.sum() == 0
    assert ended[rows_begin_ns >= end_ns].sum() > 0, "it goes on"
    waited_s = run.table("workload/latency")["latency_us"].to_numpy().max() / 1e6
    assert waited_s > seconds - pause.seconds - SETTLED_S, "the driver has counted the wait"

    volume = volume_counters(run)
    inside = (volume.t_ns >= begin_ns) & (volume.t_ns <= end_ns)
    assert inside.sum() >= 2, f"samples from {begin_ns} to {end_ns}: {volume.t_ns}"
    requests, queue_ns = (volume.columns[name][inside] for name in ("ops", "queue_time_ns"))
    assert requests[0] == requests[-1]
    sampled_ns = volume.t_ns[inside][-1] - volume.t_ns[inside][0]
    assert (queue_ns[-1] - queue_ns[0]) / sampled_ns >= 0.9, "at least one request waits all the time"

    comparison = summarise(run.path.parents[1])
    words = f"{pause.planned_s:g} s: {pause.words}"
    for text in (html(comparison), table(comparison)):
        assert words in text
