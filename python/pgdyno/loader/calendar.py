"""Days and times of Parquet beyond the years that Arrow writes as PostgreSQL reads them.

Arrow writes years below 1 with a sign and none beyond 32767; PostgreSQL writes ``0044-03-15 BC``, and goes on to the year 294276
(timestamps) or 5874897 (days). Only columns with such values come here.
"""

from __future__ import annotations

from typing import Any

DAY_S = 86_400
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FIRST_DAY, _END_DAY = -719_162, 2_932_897
"""0001-01-01 and 10000-01-01, in days since 1970."""


def written(column: Any) -> Any | None:
    """Days or times as text; None where all of them are in the years 1 to 9999, which Arrow writes itself."""
    import pyarrow as pa
    from pyarrow import compute

    kind = column.type
    ticks = DAY_S * _PER_SECOND[kind.unit] if pa.types.is_timestamp(kind) else 1
    if pa.types.is_date64(kind):
        ticks = DAY_S * 1000
    numbers = column.cast(pa.int32()).cast(pa.int64()) if pa.types.is_date32(kind) else column.cast(pa.int64())
    bounds = compute.min_max(numbers)
    least, most = bounds["min"].as_py(), bounds["max"].as_py()
    if least is None or (least >= _FIRST_DAY * ticks and most < _END_DAY * ticks):
        return None
    zone = "+00" if pa.types.is_timestamp(kind) and kind.tz is not None else ""
    is_time = pa.types.is_timestamp(kind)
    texts = [None if number is None else _text(number, ticks, zone, is_time=is_time) for number in numbers.to_pylist()]
    return pa.array(texts, pa.string())


def _text(number: int, ticks: int, zone: str, *, is_time: bool) -> str:
    days, rest = divmod(number, ticks)
    year, month, day = civil(days)
    era, shown = (" BC", 1 - year) if year < 1 else ("", year)
    clock = ""
    if is_time:
        per_second = ticks // DAY_S
        seconds, part = divmod(rest, per_second)
        digits = len(str(per_second)) - 1
        fraction = f".{part:0{digits}d}" if digits else ""
        clock = f" {seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}{zone}"
    return f"{shown:04d}-{month:02d}-{day:02d}{clock}{era}"


def civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970, in the Gregorian calendar; the year before 1 is 0."""
    # 400 years are 146,097 days; a year of them begins in March, so that a leap day is its last one.
    era, of_era = divmod(days + 719_468, 146_097)
    of_400 = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * of_400 + of_400 // 4 - of_400 // 100)
    month_from_march = (5 * of_year + 2) // 153
    day = of_year - (153 * month_from_march + 2) // 5 + 1
    month = month_from_march + 3 if month_from_march < 10 else month_from_march - 9
    return era * 400 + of_400 + (month <= 2), month, day
