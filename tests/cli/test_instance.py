"""``pgdyno catalog``: what is said of types that are sold, of measures, and of names that are none."""

from __future__ import annotations

import json

from tests.support.commands import pgdyno


def test_a_type_is_shown_with_its_limits_its_price_and_their_sources() -> None:
    code, out, _, _ = pgdyno("catalog", "show", "r6g.large")
    assert code == 0
    for words in (
        "2 vCPUs, arm64",
        "16 GiB",
        "75 to 566 MiB/s, 3,600 to 20,000 IOPS",
        "30 minutes",
        "0.1008 USD an hour",
    ):
        assert words in out
    assert "DescribeInstanceTypes" in out and "price list, 2026-07-20" in out


def test_what_has_no_limit_or_no_price_says_so() -> None:
    made = pgdyno("catalog", "show", "vcpus=4,memory=1536MiB")[1]
    assert "4 vCPUs\n" in made and "1.5 GiB" in made and "not a provider's type" in made and "price" not in made
    assert "shares the network's" in pgdyno("catalog", "show", "t2.micro")[1]
    assert "launched EBS-optimized" in pgdyno("catalog", "show", "c1.xlarge")[1]
    assert (
        "one volume at most: io1 32,000, io2-2023 32,000, io2bx 32,000 IOPS"
        in pgdyno("catalog", "show", "r4.16xlarge")[1]
    )
    steady = pgdyno("catalog", "show", "r5b.24xlarge")[1]
    assert "7,153 MiB/s, 260,000 IOPS" in steady and "30 minutes" not in steady and "Nitro" not in steady


def test_types_are_listed_by_a_part_of_their_names() -> None:
    code, out, _, _ = pgdyno("catalog", "instances", "--like", "r6g.")
    lines = out.splitlines()
    assert code == 0 and lines[0].split()[:3] == ["TYPE", "VCPUS", "MEMORY"]
    assert [line.split()[0] for line in lines[1:4]] == ["r6g.medium", "r6g.large", "r6g.xlarge"]
    code, out, err, _ = pgdyno("catalog", "instances", "--like=--nothing")
    assert (code, out) == (0, "") and "no instance type" in err


def test_json_is_the_engines_own() -> None:
    document = json.loads(pgdyno("catalog", "instances", "--json")[1])
    assert len(document["types"]) == 1395
    shown = json.loads(pgdyno("catalog", "show", "m7i.large", "--json")[1])
    assert shown in document["types"]
    assert shown["ebs"] == {
        "baseline_mib_per_s": 77.486,
        "maximum_mib_per_s": 1192.093,
        "baseline_iops": 3600,
        "maximum_iops": 40000,
        "burst": True,
        "always": True,
    }


def test_an_unknown_type_is_refused_with_the_nearest_names() -> None:
    code, out, err, _ = pgdyno("catalog", "show", "r6g.3xlarge")
    assert (code, out) == (2, "")
    assert "r6g has medium, large" in err and "remedy: r6g.xlarge or r6g.2xlarge or r6g.4xlarge" in err


def test_a_class_of_rds_has_the_limits_of_its_type_and_no_price() -> None:
    shown = json.loads(pgdyno("catalog", "show", "db.r6g.2xlarge", "--json", code=0).out)
    ec2 = json.loads(pgdyno("catalog", "show", "r6g.2xlarge", "--json", code=0).out)
    assert (shown["instance"], shown["figures_of"], ec2["figures_of"]) == ("db.r6g.2xlarge", "r6g.2xlarge", None)
    assert (shown["ebs"], shown["vcpus"], shown["memory_bytes"]) == (ec2["ebs"], ec2["vcpus"], ec2["memory_bytes"])
    assert shown["usd_per_hour"] is None
    assert "limits of EC2's r6g.2xlarge" in pgdyno("catalog", "show", "db.r6g.2xlarge").out
    listed = pgdyno("catalog", "instances", "--like", "db.r6g.", code=0).out.splitlines()
    assert [line.split()[0] for line in listed[1:3]] == ["db.r6g.medium", "db.r6g.large"]
    error = pgdyno("catalog", "show", "db.r6g.3xlarge", code=2).error
    assert error is not None and error.remedy == "db.r6g.xlarge or db.r6g.2xlarge or db.r6g.4xlarge"
