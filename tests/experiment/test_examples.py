"""Every file in ``experiments/`` can be run: its keys, its volumes, and the schema that an editor checks it with."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from jsonschema import ValidationError, validators
from jsonschema.protocols import Validator

from pgdyno.base import catalog
from pgdyno.experiment import read_experiment
from pgdyno.experiment.schema import schema_text
from pgdyno.world.base import longest_s
from tests.experiment.documents import FILE

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "experiments").glob("*.toml"))
MINUTES_MAX = 15
"""An example is something to try."""
LONGER = {
    "piops-sweep": 360,
    "huawei-cells": 90,
    "huawei-unstated": 20,
    "huawei-distance": 20,
    "hammerdb-olap": 60,
    "temp-volume": 60,
}
"""Minutes of those that are not: 120 runs, time that is 32 times slower, or queries; each reckoned with the longest that it may take."""


def test_the_examples_are_found() -> None:
    assert {path.stem for path in FILES} >= {
        "bulk-load",
        "compare-gp3-io2bx",
        "postgres-versions",
        "wal-volume",
        "hammerdb-oltp",
        "hammerdb-oltp-undilated",
        "hammerdb-olap",
        "temp-volume",
        "real-server",
        "huawei-procedure",
        "piops-sweep",
        "piops-sweep-2013-native",
        "stripes-2013",
        "whitepaper-four-volumes",
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_can_be_run_and_is_short(path: Path, engine: Path) -> None:
    experiment = read_experiment(path)
    assert experiment.file.title, "an example says what it is about"
    for arm in experiment.arms:
        for spec in arm.world.placement.values():
            assert catalog.resolve(spec).size_bytes > 0
    whole_s = sum(longest_s(cell) for cell in experiment.cells)
    assert whole_s < LONGER.get(path.stem, MINUTES_MAX) * 60
    assert len({arm.label for arm in experiment.arms}) == len(experiment.arms)


@pytest.fixture(scope="module")
def schema() -> Validator:
    """What an editor checks a file with; reading the schema takes longer than checking any file by it."""
    document = json.loads(schema_text())
    kind = validators.validator_for(document)
    kind.check_schema(document)
    return kind(document)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_an_example_fits_the_schema(path: Path, schema: Validator) -> None:
    schema.validate(tomllib.loads(path.read_text()))


def test_the_schema_refuses_what_the_reader_refuses(schema: Validator) -> None:
    for old, new in (("clients", "clinets"), ('"128MiB"', "128"), ("scale = 2", "scale = 0"), ('"1s"', '"1 day"')):
        with pytest.raises(ValidationError):
            schema.validate(tomllib.loads(FILE.replace(old, new)))


def test_the_schema_in_the_repository_is_what_the_model_makes() -> None:
    command = [sys.executable, "-m", "pgdyno.experiment.schema", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
