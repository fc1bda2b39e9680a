"""What is offered, through the commands: the same answer as `size`, decided by what binds, and nothing that would be wrong to buy."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pgdyno.advise.size.offers import of_run
from pgdyno.base.catalog import Catalog
from pgdyno.results import open_run
from tests.analysis.synthetic import GP3, GP3_WAITS, IO2BX_WAITS, Plan, make_experiment
from tests.size import formats
from tests.size.formats import Interval
from tests.support.commands import pgdyno

if TYPE_CHECKING:
    from pathlib import Path


def load(ops: int, kib: int = 8, count: int = 60) -> list[Interval]:
    """A little above and below so many requests a second, three reads of five."""
    rates = [ops - 20 + place % 40 for place in range(count)]
    return [
        Interval(rate * 3 // 5, rate - rate * 3 // 5, kib * (rate * 3 // 5), kib * (rate - rate * 3 // 5))
        for rate in rates
    ]


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """RDS's and EBS's CloudWatch of a volume that does 2,980 requests a second."""
    made = {"rds": tmp_path / "rds.json", "ebs": tmp_path / "ebs.json"}
    made["rds"].write_text(formats.rds(load(2980), 60))
    made["ebs"].write_text(formats.cloudwatch(load(2980), 60))
    return made


def remedy(*arguments: str | Path) -> dict[str, Any]:
    """What the limit asks for, as `pgdyno diagnose` has it: the last remedy, after those that cost nothing."""
    remedy: dict[str, Any] = json.loads(pgdyno("diagnose", *arguments, "--json", code=0).out)["remedies"][-1]
    return remedy


def best(*arguments: str | Path) -> dict[str, Any]:
    """The first volume that `pgdyno size` names."""
    best: dict[str, Any] = json.loads(pgdyno("size", *arguments, "--json", code=0).out)["volumes"][0]
    return best


@pytest.mark.parametrize(
    ("file", "bought", "size", "among", "spec", "usd"),
    [
        # The step of RDS at 400 GiB, where four times as much is had: $23 more, and not $452 for io1.
        ("rds", "rds-gp3:size=200GiB", "200GiB", "rds-*", "rds-gp3:size=400GiB,iops=12000,throughput=500", 46.0),
        ("rds", "rds-gp3:size=20GiB", "20GiB", "rds-*", "rds-gp3:size=400GiB,iops=12000,throughput=500", 46.0),
        # 500 IOPS per GiB: 6 GiB allow no more than they have, and two more do.
        ("ebs", "gp3:size=6GiB,iops=3000", "6GiB", None, "gp3:size=8GiB,iops=3599,throughput=125", None),
        ("ebs", "gp3:size=100GiB", "100GiB", None, "gp3:size=100GiB,iops=3599,throughput=125", None),
        # Out of credits: what carries it without them.
        ("ebs", "gp2:size=990GiB", "990GiB", None, "gp3:size=990GiB,iops=3599,throughput=125", None),
    ],
)
def test_diagnose_and_size_name_the_same_volume_at_the_same_price(
    files: dict[str, Path], file: str, bought: str, size: str, among: str | None, spec: str, usd: float | None
) -> None:
    offered = remedy("--cloudwatch", files[file], "--bought", bought)
    sized = best("--cloudwatch", files[file], "--size", size, *(() if among is None else ("--type", among)))
    assert (offered["spec"], offered["usd_per_month"]) == (sized["spec"], sized["usd_per_month"])
    assert offered["spec"] == spec
    assert usd is None or offered["usd_per_month"] == usd


def test_a_device_that_does_more_than_was_bought_leads_to_no_offer(tmp_path: Path) -> None:
    file = tmp_path / "cw.json"
    file.write_text(formats.cloudwatch(load(40_000), 60))
    document = json.loads(pgdyno("diagnose", "--cloudwatch", file, "--bought", "gp3:iops=4000", "--json", code=0).out)
    assert all(remedy["spec"] is None and remedy["usd_per_month"] is None for remedy in document["remedies"])


def test_room_on_credits_is_no_room(tmp_path: Path) -> None:
    """c6gn.large has 5,000 IOPS for ever, and 40,000 for half an hour a day."""
    file = tmp_path / "cw.json"
    file.write_text(formats.cloudwatch(load(4935), 60))
    document = json.loads(
        pgdyno("size", "--cloudwatch", file, "--size", "100GiB", "--instance", "c6gn.large", "--json", code=0).out
    )
    assert document["instance"]["carries"] is False and document["instance"]["headroom"] < 0.2
    needed = document["demand"]["needed_iops"]
    assert all(
        instance["iops"]["sustained"] >= needed and instance["headroom"] >= 0.2 - 1e-6
        for instance in document["instances"]
    )
    text = pgdyno("size", "--cloudwatch", file, "--size", "100GiB", "--instance", "c6gn.large", code=0).out
    assert "c6gn.large carries it on credits alone" in text
    default = json.loads(pgdyno("size", "--cloudwatch", file, "--size", "100GiB", "--json", code=0).out)["instances"]
    assert all(item["vcpus"] >= 2 and item["memory_bytes"] >= item["vcpus"] * 4 << 30 for item in default)
    assert {item["instance"].split(".")[0] for item in default}.isdisjoint({"t2", "t3", "t3a", "t4g", "a1", "c8gb"})


def recorded(root: Path, *arms: tuple[Any, str], instance: str | None = None) -> Path:
    """An experiment whose runs stood on these volumes, as its records are when a run ends."""
    path = make_experiment(root, Plan(arms=tuple(arm for arm, _ in arms), replicates=2, measure_s=20))
    with Catalog() as catalog:
        specs = [dict(catalog.resolve(spec).document) for _, spec in arms]
        types = {instance_type["instance"]: instance_type for instance_type in catalog.instance_types()}
    for run in sorted(path.glob("runs/*")):
        record = json.loads((run / "run.json").read_text())
        record["world"]["volumes"]["data"]["spec"] = record["world"]["volume"] = specs[record["arm_index"]]
        if instance is not None:
            named = types[instance]
            record["world"]["instance"] |= {
                "type": instance, "vcpus": named["vcpus"], "memory_bytes": named["memory_bytes"], "ebs": named["ebs"],
            }  # fmt: skip
        (run / "run.json").write_text(json.dumps(record))
        (run / "run.json").write_text(of_run(open_run(run)).model_dump_json())
    return path


def arms_of(path: Path) -> list[dict[str, Any]]:
    """What `pgdyno report` has of each arm."""
    arms: list[dict[str, Any]] = json.loads(pgdyno("report", path, "--json", code=0).out)["arms"]
    return arms


def test_compare_knows_what_it_has_measured_itself(tmp_path: Path) -> None:
    slow = replace(GP3, spec="rds-gp3:size=200GiB", waits=GP3_WAITS)
    fast = replace(slow, spec="rds-gp3:size=400GiB", tps=3800, waits=IO2BX_WAITS, iops_limit=12000, above_iops=0.0)
    path = recorded(tmp_path, (slow, "rds-gp3:size=200GiB"), (fast, "rds-gp3:size=400GiB,iops=12000,throughput=500"))
    first = arms_of(path)[0]["binding"]["remedy"]
    assert (first["spec"], first["usd_per_month"]) == ("rds-gp3:size=400GiB,iops=12000,throughput=500", 46.0)
    assert first["usd_more_per_month"] == 23.0


def test_a_busy_cpu_gets_more_of_it_for_ever_and_a_class_of_rds_no_price_of_ec2(tmp_path: Path) -> None:
    """r6g.large: 2 vCPUs. A t4g.xlarge has 4, and 1.6 for ever."""
    busy = replace(
        GP3, waits=(("CPU", "", 15.0), ("Client", "ClientRead", 1.0)), tps=300, server_share=0.93, above_iops=0.0
    )
    (arm,) = arms_of(recorded(tmp_path / "rds", (busy, "rds-gp3:size=400GiB"), instance="r6g.large"))
    assert arm["binding"]["limit"] == "server_cpu"
    remedy = arm["binding"]["remedy"]
    assert remedy["spec"].startswith("db.") and remedy["usd_per_month"] is None
    (arm,) = arms_of(recorded(tmp_path / "ec2", (busy, "gp3:size=400GiB"), instance="r6g.large"))
    result = arm["binding"]["remedy"]
    assert result["spec"].split(".")[0] not in {"t2", "t3", "t3a", "t4g"} and result["usd_per_month"] > 0
    with Catalog() as catalog:
        bought = next(
            instance_type for instance_type in catalog.instance_types() if instance_type["instance"] == result["spec"]
        )
    assert (
        bought["sustained_vcpus"] >= 2 * 0.93 * 1.2 and bought["memory_bytes"] >= 16 << 30 and bought["arch"] == "arm64"
    )
