"""Limits in the words of the table and the page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from pgdyno.advise.size import presentation
from pgdyno.advise.size.search import Layout, VolumeChoice
from pgdyno.base import catalog

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("spec", "members", "iops"),
    [
        ("st1:size=16TiB", 1, "500 of 1 MiB"),
        ("st1:size=1TiB", 1, "40 (250) of 1 MiB"),
        ("sc1:size=1TiB", 4, "48 (320) of 1 MiB"),
        ("gp3:iops=8000", 2, "16,000"),
        ("null:size=1GiB", 1, "no limit"),
    ],
)
def test_a_volume_that_charges_whole_mebibytes_has_requests_of_that_size(
    engine: Path, spec: str, members: int, iops: str
) -> None:
    choice = VolumeChoice(catalog.resolve(spec), Layout(members), cast("Any", None))
    assert presentation._iops(choice) == iops
