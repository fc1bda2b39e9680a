"""``pgdyno catalog volumes``: what can be had, what it costs, and what is past."""

from __future__ import annotations

import json
import re

from pgdyno.base.errors import EXIT_USAGE
from tests.support.commands import pgdyno


def test_types_are_listed_with_limits_price_and_durability() -> None:
    code, out, _, _ = pgdyno("catalog", "volumes")
    lines = {line.split()[0]: line for line in out.splitlines()}
    assert code == 0 and lines["TYPE"].split()[1:] == ["PROVIDER", "SIZE", "IOPS", "MIB/S", "USD/MONTH", "DURABILITY"]
    for name, words in {
        "gp3": ("1 GiB to 64 TiB", "3,000 to 80,000", "125 to 2,000", "8.00", "99.8-99.9 %"),
        "gp2": ("100 to 16,000, 3,000 with credits", "128 to 250", "10.00"),
        "st1": ("125 GiB to 16 TiB", "4 to 500, 500 with credits", "46.08"),
        "instance-store": ("/ 15,000 to 4,160,000", "gone with the instance"),
        "io1-2013": ("AWS EBS to 2014", "100 to 4,000"),
        "null": ("1 MiB to 64 TiB",),
    }.items():
        assert all(word in lines[name] for word in words), lines[name]


def test_a_part_of_a_name_or_of_a_provider_chooses() -> None:
    names = [line.split()[0] for line in pgdyno("catalog", "volumes", "--like", "azure")[1].splitlines()[1:]]
    assert names == ["azure-premium-v1", "azure-premium-v2", "azure-ultra"]
    assert pgdyno("catalog", "volumes", "--like=AWS RDS")[1].count("rds-") == 4
    code, out, err, _ = pgdyno("catalog", "volumes", "--like", "floppy")
    assert (code, out) == (0, "") and "no volume type" in err


def test_volumes_stand_beside_each_other() -> None:
    code, out, _, _ = pgdyno("catalog", "show", "gp3:iops=8000", "io2")
    assert code == 0
    rows = {name: values for name, *values in (re.split(r"  +", line) for line in out.splitlines())}
    assert rows["VOLUME"] == ["gp3:size=100GiB,iops=8000,throughput=125", "io2bx:size=100GiB,iops=16000"]
    gp3, io2 = rows["recommended for"]
    assert "development and tests" in gp3 and "less than a millisecond" in io2
    assert rows["IOPS for each GiB, at most"] == ["500", "1,000"]
    assert rows["USD a month for an IOPS"] == [
        "0 up to 3,000, then 0.005",
        "0.065, 0.046 above 32,000, 0.032 above 64,000",
    ]
    assert rows["USD a month for a MiB/s"][1] == "included"
    assert rows["USD a month, this volume"] == ["33.00", "1,052.50"]
    assert rows["failures a year"] == ["0.1 to 0.2 %", "0.001 %"]
    refused = pgdyno("catalog", "show", "gp9")
    assert refused[0] == EXIT_USAGE
    assert "gp9" in refused[2]
    [result] = json.loads(pgdyno("catalog", "show", "io2", "--json")[1])["types"]
    assert result["type"] == "io2bx"


def test_json_has_every_type_with_its_sources() -> None:
    types = json.loads(pgdyno("catalog", "volumes", "--json")[1])["types"]
    assert all(
        type_["sources"] and type_["provider"] and type_["default_spec"].startswith(type_["type"]) for type_ in types
    )
    assert {type_["type"] for type_ in types if type_["until"]} == {
        "gp3-2023",
        "gp2-2018",
        "gp2-2014",
        "io2-2023",
        "io1-2018",
        "io1-2013",
    }
    gp2 = next(type_ for type_ in types if type_["type"] == "gp2")
    assert gp2["aliases"] == {} and "credits" in gp2["keys"] and gp2["burst_iops_max"] == 3_000
