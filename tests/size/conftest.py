"""One engine that answers for all tests of sizing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pgdyno.base.catalog import Catalog


@pytest.fixture(scope="session")
def catalog() -> Iterator[Catalog]:
    """Started before the first test that uses it, so that no test is blamed for its process."""
    with Catalog() as opened:
        opened.volume_types()
        yield opened
