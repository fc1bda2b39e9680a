"""What one more GiB costs, by the catalogue."""

from __future__ import annotations

import pytest

from pgdyno import _engine
from pgdyno.world.price import price_of_more


@pytest.mark.parametrize(
    ("spec", "usd_per_gib", "follows"),
    [
        ("gp3", 0.08, False),
        ("gp3:size=1274GiB,iops=10000,throughput=1000", 0.08, False),
        ("io2bx:size=2TiB,iops=40000", 0.125, False),
        ("8xgp3:size=1274GiB,iops=10000,throughput=1000", 0.08, False),
        ("raid10:4xgp3:size=100GiB", 0.16, False),
        ("gp2:size=100GiB", 0.10, True),
    ],
)
def test_price_of_one_more_gib(spec: str, usd_per_gib: float, follows: bool) -> None:
    """A RAID-10 buys two of each. Prices have whole cents: over so many GiB that is less than 0.01 %."""
    more = price_of_more(_engine.run_json(["volume", "spec", spec]))
    assert more is not None
    assert more.usd_per_gib_month == pytest.approx(usd_per_gib, rel=1e-4)
    assert more.limits_follow_size is follows


def test_what_nobody_sells_has_no_price() -> None:
    assert price_of_more(_engine.run_json(["volume", "spec", "null"])) is None


def test_the_published_comparison_has_its_published_prices() -> None:
    gp3 = _engine.run_json(["volume", "spec", "8xgp3:size=1274GiB,iops=10000,throughput=1000"])
    io2 = _engine.run_json(["volume", "spec", "2xio2bx:size=2TiB,iops=40000"])
    assert (gp3["usd_per_month"], io2["usd_per_month"]) == (1375.36, 5408.00)
