"""``make bench ONLY=torn``: the verdict on full_page_writes off, for each way of writing."""

from __future__ import annotations

import os

import pytest

from tools.crash import __main__ as command
from tools.crash import torn_page

pytestmark = [pytest.mark.bench, pytest.mark.needs_fuse]


def test_each_way_of_writing_has_its_verdict() -> None:
    """``PGDYNO_CUTS`` sets another number of cuts; the record says how many there were."""
    measured = command.measured("torn", int(os.environ.get("PGDYNO_CUTS", torn_page.CUTS)))
    assert [str(claim) for claim in command.write("torn", measured) if not claim.holds] == []
