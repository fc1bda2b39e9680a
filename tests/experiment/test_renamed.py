"""An experiment is continued under the name that its runs carry."""

from __future__ import annotations

from pathlib import Path

import pytest

from pgdyno.base.errors import InputError
from pgdyno.flow.resume import finished
from tests.analysis.synthetic import make_experiment


def test_an_experiment_in_a_renamed_directory_is_not_continued(tmp_path: Path) -> None:
    directory = make_experiment(tmp_path)
    assert finished(directory) == {0, 1, 2, 3, 4, 5}
    renamed = directory.rename(tmp_path / "mine")
    with pytest.raises(InputError, match="under another name") as refused:
        finished(renamed)
    assert refused.value.remedy == f"its runs name it; rename the directory to {directory.name} to resume it"


def test_a_run_that_cannot_be_read_is_said_before_anything_is_loaded(tmp_path: Path) -> None:
    """It would be made again, and refused only when its directory is found to be there."""
    directory = make_experiment(tmp_path)
    record = min((directory / "runs").glob("*/run.json"))
    record.write_text("{")
    with pytest.raises(InputError, match="cannot be read") as refused:
        finished(directory)
    assert str(record.parent) in refused.value.message
    assert "its run is made again" in refused.value.remedy
