"""Runs that were never made, to store and to query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pytest

from pgdyno.results import RunWriter, run_name, write_experiment
from pgdyno.results.record import (
    Account,
    Anchor,
    ExperimentRecord,
    HostRecord,
    PostgresRecord,
    RunPhase,
    RunRecord,
    Validity,
    WorldRecord,
)

if TYPE_CHECKING:
    from pathlib import Path

EXPERIMENT_ID = "20261121T124500Z-compare-abcdef"
HASH = "abcdef" + "0" * 58


def make_record(**changes: Any) -> RunRecord:
    """A sound record of a run of ten seconds on a server of which only the workload was seen, with some fields changed."""
    values: dict[str, Any] = {
        "run_id": "00-gp3-r1",
        "experiment_id": EXPERIMENT_ID,
        "experiment_hash": HASH,
        "command": ("pgdyno", "compare", "gp3", "io2bx"),
        "arm": "gp3",
        "arm_index": 0,
        "block": 1,
        "position": 0,
        "seed": 7,
        "anchor": Anchor(monotonic_ns=5_000_000_000, unix_ns=1_795_265_771_000_000_000),
        "world": WorldRecord(kind="real", host=HostRecord(cores=2, kernel="6.18", memory_bytes=1 << 30)),
        "workload": {"kind": "pgbench", "closed": True},
        "postgres": PostgresRecord(version="18.6", source="test"),
        "phases": (RunPhase(name="measure", begin_ns=5_000_000_000, end_ns=15_000_000_000),),
        "account": Account(scheduled=100, skipped=0, succeeded=100, failed=0),
        "validity": Validity(valid=True),
    }
    return RunRecord(**values | changes)


def make_experiment_record(arms: tuple[str, ...], replicates: int) -> ExperimentRecord:
    """The record of a comparison of ``arms``."""
    return ExperimentRecord(
        experiment_id=EXPERIMENT_ID,
        experiment_hash=HASH,
        kind="compare",
        created_unix_ns=1_795_265_100_000_000_000,
        command=("pgdyno", "compare", *arms),
        seed=7,
        arms=arms,
        replicates=replicates,
    )


def throughput_table(transactions: int) -> pa.Table:
    """``workload/throughput`` of one second."""
    return pa.table(
        {
            "t_begin_ns": [5_000_000_000],
            "t_end_ns": [6_000_000_000],
            "script": ["tpcb-like"],
            "transactions": [transactions],
            "failed": [0],
            "skipped": [0],
        }
    )


class MakeExperiment(Protocol):
    """Writes an experiment below a results folder and returns its directory."""

    def __call__(self, root: Path, replicates: int = 2) -> Path:
        """One run of each of gp3 and io2bx in every block."""


@pytest.fixture
def make_experiment() -> MakeExperiment:
    """The writer of experiments."""

    def make(root: Path, replicates: int = 2) -> Path:
        arms = ("gp3", "io2bx:iops=16000")
        path = write_experiment(root, make_experiment_record(arms, replicates))
        for position in range(replicates * len(arms)):
            block, index = position // len(arms) + 1, position % len(arms)
            name = run_name(position, arms[index], block)
            writer = RunWriter(root, EXPERIMENT_ID, name)
            writer.table("workload/throughput", throughput_table(100 * (position + 1)))
            writer.finish(
                make_record(
                    run_id=name,
                    arm=arms[index],
                    arm_index=index,
                    block=block,
                    position=position,
                    account=Account(
                        scheduled=100 * (position + 1), skipped=0, succeeded=100 * (position + 1), failed=0
                    ),
                )
            )
        return path

    return make
