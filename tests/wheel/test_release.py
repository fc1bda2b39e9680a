"""The workflow that releases builds by targets of the Makefile, and no other way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BUILDS = {"wheel", "sdist"}


def test_the_workflow_builds_by_targets_that_exist(repository: Path) -> None:
    workflow = (repository / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):.*## ", (repository / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = set(re.findall(r"\brun: make (\w+)$", workflow, re.MULTILINE))
    assert used == BUILDS
    assert used <= targets


def test_the_workflow_keeps_no_secret_and_publishes_tags_alone(repository: Path) -> None:
    workflow = (repository / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert "secrets." not in workflow
    assert re.search(r"publish:\n    if: github.event_name == 'push'", workflow)
