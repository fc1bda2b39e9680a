"""Latency as HDR histograms: three significant digits, kept whole, mergeable by adding counts.

A value below 2,048 µs is kept as it is; above, the last of eleven significant bits is the resolution, so a bucket is
never wider than 0.1 % of its value. A bucket is named by its lowest value.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from hdrh.histogram import HdrHistogram

SIGNIFICANT_DIGITS = 3
LATENCY_US_MAX = 3_600_000_000
"""One hour. A transaction that took longer is counted there."""
ALL = "all"
"""Name of the histogram of all scripts together."""

_BITS = 11


def bucket_us(latency_us: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Lowest value of the bucket of each latency."""
    import numpy as np

    values = np.clip(latency_us.astype(np.int64), 0, LATENCY_US_MAX)
    shift = _shift(values)
    buckets: np.ndarray[Any, Any] = (values >> shift) << shift
    return buckets


def _shift(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """How many of the lowest bits of each value its bucket leaves open."""
    import numpy as np

    # float64 holds every value up to 2^53 exactly, so frexp's exponent is the length in bits.
    shift: np.ndarray[Any, Any] = np.maximum(np.frexp(values.astype(np.float64))[1].astype(np.int64) - _BITS, 0)
    return shift


def per_second(
    second: np.ndarray[Any, Any],
    script: np.ndarray[Any, Any],
    latency_us: np.ndarray[Any, Any],
    times: np.ndarray[Any, Any] | None = None,
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Count transactions by (second, script, bucket). Returns these three and the count, sorted; takes integers.

    Each latency occurred this number of ``times``, by default once.
    """
    import numpy as np

    if len(second) == 0:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none, none
    bucket = bucket_us(latency_us)
    scripts = int(script.max()) + 1
    key = (second.astype(np.int64) * scripts + script) * (LATENCY_US_MAX + 1) + bucket
    unique, where = np.unique(key, return_inverse=True)
    count = np.bincount(where, weights=times).astype(np.int64)
    group, found_bucket = np.divmod(unique, LATENCY_US_MAX + 1)
    found_second, found_script = np.divmod(group, scripts)
    return found_second, found_script, found_bucket, count


def of_buckets(latency_us: np.ndarray[Any, Any], count: np.ndarray[Any, Any]) -> HdrHistogram:
    """An HDR histogram of values that occurred ``count`` times each."""
    import numpy as np
    from hdrh.histogram import HdrHistogram

    histogram = HdrHistogram(1, LATENCY_US_MAX, SIGNIFICANT_DIGITS)
    values, where = np.unique(bucket_us(latency_us), return_inverse=True)
    if len(values) > 0:
        # What `record_value` does, for all of them at once: with a second's values in a thousand buckets it was half the work.
        times, shift = np.bincount(where, weights=count).astype(np.int64), _shift(values)
        half = 1 << (_BITS - 1)
        np.frombuffer(histogram.counts, dtype=np.int64)[(shift + 1) * half + (values >> shift) - half] += times
        histogram.total_count = int(times.sum())
        histogram.min_value, histogram.max_value = int(values[0]), int(values[-1])
    return histogram


def document(latency: pa.Table, begin_ns: int, end_ns: int) -> dict[str, Any]:
    """``latency.hdr.json``: of the seconds inside [begin, end) of a latency table, base64 of HDR's V2 encoding.

    One histogram for each script, and ``all``.
    """
    import pyarrow.compute as pc

    inside = latency.filter(
        pc.and_(pc.greater_equal(latency["t_begin_ns"], begin_ns), pc.less_equal(latency["t_end_ns"], end_ns))
    )
    parts = {
        name: inside.filter(pc.equal(inside["script"], name))
        for name in sorted(pc.unique(inside["script"]).to_pylist())
    }
    parts[ALL] = inside
    return {
        "unit": "us",
        "significant_digits": SIGNIFICANT_DIGITS,
        "begin_ns": begin_ns,
        "end_ns": end_ns,
        "histograms": {
            name: of_buckets(part["latency_us"].to_numpy(), part["count"].to_numpy()).encode().decode()
            for name, part in parts.items()
        },
    }


def decode(text: str) -> HdrHistogram:
    """The histogram of one entry of ``histograms``."""
    from hdrh.histogram import HdrHistogram

    return HdrHistogram.decode(text)


def added(texts: Iterable[str | None]) -> str | None:
    """Encoded histograms as one, bucket by bucket; None where none holds anything."""
    results = [text for text in texts if text is not None]
    if len(results) < 2:
        return results[0] if results else None
    whole = decode(results[0])
    for text in results[1:]:
        whole.add(decode(text))
    return str(whole.encode().decode())


def buckets(text: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The buckets of an encoded histogram that hold anything: (lowest value, count).

    Takes every histogram of three significant digits up to an hour, as :data:`LATENCY_US_MAX` and the engine have them.
    """
    import numpy as np

    counts = np.frombuffer(decode(text).counts, dtype=np.uint64).astype(np.int64)
    held = np.flatnonzero(counts)
    # HDR's layout: 2^11 buckets of width 1, then 2^10 of each further power of two.
    power = np.maximum((held >> (_BITS - 1)) - 1, 0)
    return (held - (power << (_BITS - 1))) << power, counts[held]
