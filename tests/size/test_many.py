"""``pgdyno size`` on many files: an answer for each, as for that file alone, and a total."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pgdyno.base.errors import EXIT_OK, EXIT_USAGE
from tests.size import formats
from tests.size.formats import Interval
from tests.support.commands import pgdyno

TERMS = ("--size", "100GiB", "--type", "gp3", "--arrays", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three hosts, of 500, 4,000 and 9,000 requests a second."""
    made = tmp_path / "hosts"
    made.mkdir()
    for name, ops in (("a.txt", 500), ("b.txt", 4000), ("c.txt", 9000)):
        (made / name).write_text(formats.iostat_12_7([Interval(ops // 2, ops // 2, 4 * ops, 4 * ops)] * 30, 1))
    return made


def test_each_file_has_the_answer_that_it_has_alone_and_all_have_a_total(folder: Path) -> None:
    document = json.loads(pgdyno("size", "--iostat", folder / "*.txt", *TERMS, "--json", code=EXIT_OK).out)
    names = [str(folder / name) for name in ("a.txt", "b.txt", "c.txt")]
    assert [file["name"] for file in document["files"]] == names
    alone = [json.loads(pgdyno("size", "--iostat", name, *TERMS, "--json", code=EXIT_OK).out) for name in names]
    assert [file["advice"] for file in document["files"]] == alone
    prices = [item["volumes"][0]["usd_per_month"] for item in alone]
    assert prices == sorted(prices) and prices[0] < prices[-1]
    total = {"files": 3, "counted": 3, "left_out": [], "usd_per_month": pytest.approx(sum(prices))}
    assert document["total"] == total


def test_the_table_has_a_line_for_each_and_the_total(folder: Path) -> None:
    lines = pgdyno("size", "--iostat", folder / "*.txt", *TERMS, code=EXIT_OK).out.splitlines()
    assert [line.split()[0] for line in lines[1:4]] == [str(folder / name) for name in ("a.txt", "b.txt", "c.txt")]
    assert "gp3:size=100GiB,iops=3000,throughput=125" in lines[1]
    assert lines[4].startswith("all 3")
    total = sum(float(line.split("$")[1].replace(",", "")) for line in lines[1:4])
    assert float(lines[4].split("$")[1].replace(",", "")) == pytest.approx(total)


def test_a_file_that_is_wrong_does_not_hide_the_others_nor_their_total(folder: Path) -> None:
    whole = json.loads(pgdyno("size", "--iostat", folder / "*.txt", *TERMS, "--json", code=EXIT_OK).out)
    prices = [file["advice"]["volumes"][0]["usd_per_month"] for file in whole["files"]]
    (folder / "b.txt").write_text("nothing of iostat\n")
    ended = pgdyno("size", "--iostat", folder / "*.txt", *TERMS, code=EXIT_USAGE)
    lines = ended.out.splitlines()
    assert "gp3:" in lines[1] and "gp3:" in lines[3]
    assert lines[4].startswith("2 of 3") and f"${prices[0] + prices[2]:,.0f}" in lines[4]
    assert "b.txt" in lines[6], "the file that does not count is named below the total"
    assert ended.error.code == "size.fleet.files" and ended.error.data["files"] == [str(folder / "b.txt")]
    document = json.loads(pgdyno("size", "--iostat", folder / "*.txt", *TERMS, "--json", code=EXIT_USAGE).out)
    assert document["total"]["usd_per_month"] == pytest.approx(prices[0] + prices[2])
    assert document["total"]["counted"] == 2
    assert [item["name"] for item in document["total"]["left_out"]] == [str(folder / "b.txt")]
    assert document["files"][1]["advice"] is None and document["files"][1]["error"]


def test_servers_without_a_size_are_not_sized(folder: Path) -> None:
    """Volumes of 1 GiB would be the cheapest for each, and the total no budget."""
    terms = ("--type", "gp3", "--arrays", "1")
    error = pgdyno("size", "--iostat", folder / "*.txt", *terms, code=EXIT_USAGE).error
    assert error.code == "size.fleet.no_sizes" and error.data["files"] == 3 and len(error.data["without"]) == 3
    error = pgdyno("size", "--iostat", folder / "*.txt", *terms, "--size", "b*=1TiB", code=EXIT_USAGE).error
    assert error.data["without"] == [str(folder / name) for name in ("a.txt", "c.txt")]


def test_each_server_may_have_its_own_size(folder: Path) -> None:
    sizes = ("--size", "100GiB", "--size", "b*=1TiB", "--size", f"{folder}/c.txt=2TiB")
    document = json.loads(
        pgdyno("size", "--iostat", folder / "*.txt", *sizes, "--type", "gp3", "--json", code=EXIT_OK).out
    )
    assert [file["advice"]["demand"]["size_bytes"] >> 30 for file in document["files"]] == [100, 1024, 2048]
    error = pgdyno("size", "--iostat", folder / "a.txt", "--size", "1TiB", "--size", "2TiB", code=EXIT_USAGE).error
    assert error.code == "size.size.twice"


def test_a_page_for_many_says_how_each_gets_its_own(folder: Path) -> None:
    words = ("--iostat", folder / "*.txt", "--html", folder / "page.html")
    error = pgdyno("size", *words, *TERMS, code=EXIT_USAGE).error
    assert error.code == "size.fleet.html" and "--html a.html" in error.remedy


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--iostat", "{folder}/*.nothing"), "no file matches"),
        (("--iostat", "{folder}/a.txt", "--spread", "tls://10.0.0.5", "--keys", "k"), "--spread is for many files"),
        (("--iostat", "{folder}/*.txt", "--spread", "tls://10.0.0.5"), "--spread needs --keys"),
    ],
)
def test_what_many_files_cannot_have_is_refused(folder: Path, words: tuple[str, ...], said: str) -> None:
    texts = [word.format(folder=folder) for word in words]
    assert said in pgdyno("size", *texts, *TERMS, code=EXIT_USAGE).err
