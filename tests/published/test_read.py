"""Files of published figures: what they mean, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from pgdyno.base.errors import InputError
from pgdyno.published import read_document, read_documents
from tests.published.conftest import Write

FOLDER = Path(__file__).resolve().parents[2] / "catalog" / "published"


def test_a_claim_is_computed_and_compared_in_the_digits_that_are_printed(write: Write) -> None:
    document = read_document(write())
    [comparison] = document.comparison
    assert document.outcome(comparison).computed == Decimal("2.08")
    assert document.outcome(comparison).agrees
    assert document.figures() == 7
    changed = read_document(write(("value = 208\n", "value = 207\n")))
    assert not changed.outcome(comparison).agrees


def test_a_half_of_the_last_printed_digit_still_agrees_and_more_does_not(write: Write) -> None:
    document = read_document(write(("value = 208\n", "value = 208.5\n")))
    assert document.outcome(document.comparison[0]).agrees
    document = read_document(write(("value = 208\n", "value = 208.6\n")))
    assert not document.outcome(document.comparison[0]).agrees


def test_about_allows_five_per_cent(write: Write) -> None:
    about = ('value = 2.08\nunit = "times"\n', 'value = 2.00\nunit = "times"\napproximate = true\n')
    document = read_document(write(about))
    assert document.outcome(document.comparison[0]).agrees  # 4 % above
    document = read_document(write(about, ("value = 208\n", "value = 211\n")))
    assert not document.outcome(document.comparison[0]).agrees


def test_a_ratio_that_is_stated_without_its_figures_has_nothing_to_be_computed_from(write: Write) -> None:
    document = read_document(write(('high = "tps_b"\nlow = "tps_a"\n', "")))
    outcome = document.outcome(document.comparison[0])
    assert (outcome.computed, outcome.stated) == (None, Decimal("2.08"))


def test_a_comparison_has_a_ratio_a_unit_and_the_documents_about(write: Write) -> None:
    document = read_document(write())
    assert document.ratio(document.comparison[0]) == (Decimal("2.08"), Decimal(0))
    assert document.unit_of("tps_b") == "TPS"
    assert document.unit_of("max(cells_qps)") == "QPS"
    assert document.unit_of("tps_b / ratio") == "", "figures of two units"
    vague = read_document(write(("value = 208\n", "value = 208\napproximate = true\n")))
    assert vague.ratio(vague.comparison[0])[1] == Decimal("0.05")
    stated = read_document(write(('high = "tps_b"\nlow = "tps_a"\n', "")))
    assert stated.ratio(stated.comparison[0])[0] == Decimal("2.08")


def test_a_comparison_has_one_kind_of_answer(write: Write) -> None:
    offer = '[comparison.offer]\nmetric = "usd_per_month"\nhigh = "gp3"\nlow = "gp2"\n[[arithmetic]]'
    with pytest.raises(InputError, match="has several of `answer`, `offer` and `unanswered`: write one"):
        read_document(write(("[[arithmetic]]", offer)))


def test_a_row_of_a_table_says_where_it_stands(write: Write) -> None:
    assert read_document(write()).table[0].places() == ["Table 1-1", "Table 1-1"]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('at = "Results"\n', "", r"figure\[1\].at: Field required"),
        ('at = "Results"\n', 'at = ""\n', r"figure\[1\].at: String should have at least 1 character"),
        ('of = "a"\n', 'off = "a"\n', r"figure\[1\].off: Extra inputs are not permitted"),
        ("value = 100\n", 'value = "many"\n', r"figure\[1\].value"),
        ("10.5, 210.0]", "10.5]", r"table\[1\].*row 1 has 3 cells instead of 4"),
        ("10.5, 210.0]", '10.5, "x"]', r"row 1 has a text where a figure belongs"),
        ('at = "Table {table}"', 'at = "Table {page}"', r"`at` names `page`, which is not an axis"),
        ('why = "the default, and a quarter"\n', "", r"unstated\[1\].why: Field required"),
        ('low = "tps_a"\n', "", r"comparison\[1\].*has one of `high` and `low`"),
        ('high = "tps_b"\nlow = "tps_a"\nstated = "ratio"\n', "", r"comparison\[1\].*or the ratio in `stated`"),
        ('name = "post"', 'name = "other"', "its name is `other`"),
        ('title = "A post"', "title = A post", "at line"),
    ],
)
def test_a_wrong_file_is_refused_with_its_key(write: Write, old: str, new: str, said: str) -> None:
    path = write((old, new))
    with pytest.raises(InputError, match=said) as refused:
        read_document(path)
    assert str(path) in refused.value.message
    assert refused.value.remedy


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml cannot be read: No such file"):
        read_document(tmp_path / "none.toml")


def test_the_catalogue_has_five_documents_and_every_cell_of_the_largest() -> None:
    documents = {read_document.name: read_document for read_document in read_documents(FOLDER)}
    assert sorted(documents) == ["article-2013", "bulk-load", "huawei", "io2", "whitepaper"]
    [cells] = documents["huawei"].table
    assert len(cells.rows) == 74
    for row in cells.rows:
        _, _, _, vcpus, memory_gb, tps, qps = row
        assert Decimal(memory_gb) / Decimal(vcpus) in (2, 4, 8)
        # A transposed or lost digit shows: sysbench counts 20 statements in each transaction, and the tables have two decimals.
        assert abs(Decimal(qps) / Decimal(tps) - 20) < Decimal("0.01")
