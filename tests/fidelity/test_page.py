"""The page shows every claim and the points of the smaller parts, marks what the host could not carry, and the record survives a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.fidelity import synthetic
from tools.fidelity import matrix, page
from tools.fidelity.claims import judge
from tools.fidelity.point import Record

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def rendered() -> str:
    """The page, and the sections that it leaves out."""
    points = list(synthetic.record())
    large = [page.part(name, [point for point in points if point.cell.part == name]) for name in page.LARGE]
    text = page.render(synthetic.MACHINE, points, judge(points))
    assert not any(section.splitlines()[0] in text for section in large)
    return "\n".join([text, *large])


def test_every_claim_and_every_volume_is_on_the_page() -> None:
    text = rendered()
    for claim in judge(synthetic.record()):
        assert f"| {claim.name} | {claim.bar} | {claim.found} | yes |" in text
    for volume in matrix.VOLUMES:
        assert f"`{volume}`" in text
    for name in page.NAMES.values():
        assert f"| {name} |" in text


def test_every_row_has_the_columns_of_its_header() -> None:
    columns = 0
    for line in rendered().splitlines():
        if not line.startswith("|"):
            columns = 0
        elif columns:
            assert line.count(" | ") == columns, line
        else:
            columns = line.count(" | ")


def test_a_claim_that_does_not_hold_is_said() -> None:
    points = list(synthetic.record())
    claims = judge(points)
    broken = [type(claim)(claim.name, claim.bar, claim.found, False, ("why",)) for claim in claims]
    assert page.render(synthetic.MACHINE, points, broken).count("**no**") == len(claims)
    assert "why" in str(broken[0])


def test_a_part_that_was_measured_anew_is_said(tmp_path: Path) -> None:
    record = Record(tmp_path)
    assert record.repeated() == []
    for part in ("depth-1", "types", "depth-1"):
        record.repeats(part)
    points = list(synthetic.record())
    text = page.render(synthetic.MACHINE, points, judge(points), record.repeated())
    assert "after the record had been judged: `depth-1` 2 times, `types` once." in text
    assert "anew" not in page.render(synthetic.MACHINE, points, judge(points))


def test_a_job_that_a_run_would_refuse_is_marked() -> None:
    points = list(synthetic.record())
    index = next(i for i, p in enumerate(points) if p.cell.part == "rate" and p.modelled)
    assert not page.beyond_host(points[index])
    points[index] = points[index].model_copy(update={"daemon": synthetic.daemon(late=300)})
    assert page.beyond_host(points[index])
    assert page.render(synthetic.MACHINE, points, []).count(" † |") == 1


def test_a_record_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools.fidelity import point

    monkeypatch.setattr(point.Machine, "here", classmethod(lambda cls: synthetic.MACHINE))
    points = synthetic.record()[:3]
    cells = [p.cell for p in points]
    begun = Record.resumed(tmp_path, cells)
    for item in points[:2]:
        begun.add(item)
    again = Record.resumed(tmp_path, cells)
    assert again.folder == begun.folder
    assert [cell for cell in cells if not again.has(cell)] == cells[2:]
    assert again.points() == list(points[:2]), "nothing is lost on the way through a file"
    other = synthetic.MACHINE.model_copy(update={"build_hash": "another"})
    monkeypatch.setattr(point.Machine, "here", classmethod(lambda cls: other))
    monkeypatch.setattr(point.Record, "_now", staticmethod(lambda: "20991231-000000"))
    assert Record.resumed(tmp_path, cells).folder != begun.folder, "another build is another record"
    latest = Record.latest(tmp_path)
    assert latest is not None
    assert latest.machine == other
