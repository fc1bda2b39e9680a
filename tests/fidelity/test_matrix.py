"""The matrix has what its page says it has, and fits the time that it says it takes."""

from __future__ import annotations

from itertools import combinations

from tools.fidelity import matrix
from tools.fidelity.cell import Cell, Job, Limits

GP3 = Limits(iops=3000, bytes_per_s=125 << 20, unit_bytes=256 << 10)


def test_every_pair_of_values_of_two_axes_occurs() -> None:
    found = [(c.volume, (c.job.pattern, c.job.mix), c.job.block_kib, c.job.depth) for c in matrix.pairs()]
    axes = (matrix.VOLUMES, matrix.MODES, matrix.BLOCKS_KIB, matrix.DEPTHS)
    for a, b in combinations(range(4), 2):
        assert {(cell[a], cell[b]) for cell in found} == {(x, y) for x in axes[a] for y in axes[b]}


def test_the_record_takes_less_than_25_minutes_and_no_two_cells_share_a_file() -> None:
    cells = matrix.cells()
    assert sum(cell.takes_s for cell in cells) < 25 * 60
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
    assert len(short) == len(matrix.cells())


def test_what_is_asked_is_the_limit_that_binds() -> None:
    assert GP3.asked_iops(Job("random", "read", 4, 32, 1)) == 3000, "IOPS"
    assert GP3.asked_iops(Job("random", "read", 256, 32, 1)) == 500, "throughput: 125 MiB/s"
    assert GP3.asked_iops(Job("sequential", "read", 4, 32, 1)) == 32_000, "merged: throughput alone"
    assert GP3.asked_iops(Job("sequential", "read", 4, 1, 1)) == 3000, "nothing to merge with"
    assert Limits(None, None, 1).asked_iops(Job("random", "read", 4, 1, 1)) is None


def test_a_key_is_a_name_for_a_file() -> None:
    cell = Cell("rate", "pgdyno", "gp3:iops=3000,order=fifo", Job("random", "70/30", 4, 32, 60))
    assert cell.key == "rate-pgdyno-gp3-iops-3000-order-fifo-randrw-4k-d32-60s-1"
