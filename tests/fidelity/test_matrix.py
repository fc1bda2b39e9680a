"""The matrix has what its page says it has, and fits the time that it says it takes."""

from __future__ import annotations

from itertools import combinations

import pytest

from pgdyno.base import catalog, engine
from tools.fidelity import kinds, matrix
from tools.fidelity.cell import Cell, Job, Limits

SAME_AS = {
    "instance-store": "its default is dilated",
    "rds-io1": "the io1 it stands on",
    "rds-io2bx": "io2bx",
    "gcp-pd-balanced": "gcp-pd-ssd",
}
"""Types that are not measured at their most, and what stands for them."""
GP3 = Limits(iops=3000, bytes_per_s=125 << 20, unit_bytes=256 << 10)


def test_every_pair_of_values_of_two_axes_occurs() -> None:
    patterns = [(c.volume, (c.job.pattern, c.job.mix), c.job.block_kib, c.job.depth) for c in matrix.pairs()]
    axes = (matrix.VOLUMES, matrix.MODES, matrix.BLOCKS_KIB, matrix.DEPTHS)
    for a, b in combinations(range(4), 2):
        assert {(cell[a], cell[b]) for cell in patterns} == {(x, y) for x in axes[a] for y in axes[b]}


def test_the_record_takes_less_than_half_an_hour_and_no_two_cells_share_a_file() -> None:
    cells = matrix.cells()
    assert sum(cell.takes_s for cell in cells) < 30 * 60
    assert len({cell.key for cell in cells}) == len(cells)


def test_what_is_compared_is_measured_one_after_the_other_and_nobody_is_always_first() -> None:
    for part, worlds in (("peers", matrix.PEERS), ("path", matrix.PATHS)):
        of_part = [cell for cell in matrix.cells() if cell.part == part]
        groups = [of_part[i : i + len(worlds)] for i in range(0, len(of_part), len(worlds))]
        assert all({cell.world for cell in group} == set(worlds) for group in groups)
        assert all(len({(cell.volume, cell.job) for cell in group}) == 1 for group in groups)
        assert len({group[0].world for group in groups}) == len(worlds)


def test_a_trial_has_the_same_cells_with_shorter_jobs() -> None:
    short = matrix.shortened(matrix.cells(), 2)
    assert {cell.job.seconds for cell in short} == {2}
    assert {(cell.dilation, cell.instance) for cell in short} == {(c.dilation, c.instance) for c in matrix.cells()}
    assert len(short) == len(matrix.cells())


def test_what_is_asked_is_the_limit_that_binds() -> None:
    assert GP3.asked_iops(Job("random", "read", 4, 32, 1)) == 3000, "IOPS"
    assert GP3.asked_iops(Job("random", "read", 256, 32, 1)) == 500, "throughput: 125 MiB/s"
    assert GP3.asked_iops(Job("sequential", "read", 4, 32, 1)) == 32_000, "merged: throughput alone"
    assert GP3.asked_iops(Job("sequential", "read", 4, 1, 1)) == 3000, "nothing to merge with"
    assert Limits(None, None, 1).asked_iops(Job("random", "read", 4, 1, 1)) is None


@pytest.mark.parametrize(
    ("spec", "job", "asked"),
    [
        ("st1", Job("random", "read", 4, 32, 1), 250),  # whole units of 1 MiB, of 250 MiB/s while it bursts
        ("instance-store", Job("random", "read", 4, 32, 1), 50_000),  # i4i.large
        ("instance-store", Job("random", "write", 8, 32, 1), 27_500 / 2),  # units of 4 KiB
        ("gcp-pd-standard", Job("random", "write", 4, 32, 1), 150),
        ("gcp-pd-standard", Job("random", "70/30", 4, 32, 1), 1 / (0.7 / 75 + 0.3 / 150)),
        ("4xgp3:iops=4000", Job("random", "read", 4, 32, 1), 16_000),
    ],
)
def test_what_is_asked_of_a_type_is_what_its_provider_says(spec: str, job: Job, asked: float) -> None:
    assert Limits.of(catalog.resolve(spec).document).asked_iops(job) == pytest.approx(asked)


def test_every_type_that_can_be_attached_is_measured_and_what_is_real_is_within_reach() -> None:
    types = {type_["type"] for type_ in engine.run_json(["volume", "types"])["types"]} - {"null"}
    assert set(kinds.DEFAULTS) == types
    for cell in kinds.cells():
        value = Limits.of(catalog.resolve(cell.volume).document).asked_iops(cell.job)
        assert value is not None
        if cell.job.depth > 1 and cell.instance is None:
            assert value / cell.dilation <= kinds.IOPS_UNDILATED, cell
            assert value / cell.dilation * cell.job.block_kib <= kinds.MIB_PER_S_UNDILATED << 10, cell


def test_a_type_with_more_than_the_undilated_is_measured_dilated_at_more() -> None:
    large = {cell.volume.partition(":")[0]: cell.dilation for cell in kinds.large()}
    assert all(dilation > 1 for dilation in large.values())
    for type_ in engine.run_json(["volume", "types"])["types"]:
        most = (type_["iops"] or {}).get("maximum") or 0
        assert most <= 4 * kinds.IOPS_UNDILATED or type_["type"] in large or type_["type"] in SAME_AS, type_["type"]


def test_a_key_is_a_name_for_a_file() -> None:
    cell = Cell("rate", "pgdyno", "gp3:iops=3000,order=fifo", Job("random", "70/30", 4, 32, 60))
    assert cell.key == "rate-pgdyno-gp3-iops-3000-order-fifo-randrw-4k-d32-60s-1"
    dilated = Cell("types", "pgdyno", "gp3", Job("random", "read", 4, 1, 2), dilation=8)
    assert dilated.key == "types-pgdyno-gp3-randread-4k-d1-2s-dilated-8-1"
    pair = Cell("types", "pgdyno", "gp3", Job("random", "read", 4, 1, 2), instance="r6g.2xlarge")
    assert pair.key == "types-pgdyno-gp3-randread-4k-d1-2s-on-r6g-2xlarge-1"
