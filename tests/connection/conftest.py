"""One server with certificates of every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.drive import secured

from . import site_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="session")
def whole_site(system_postgres: Path) -> Iterator[site_of.Site]:
    """A server of a package, since the embedded one is built without TLS."""
    reason = secured.missing_openssl()
    if reason is not None:
        pytest.skip(reason)
    with site_of.site(system_postgres) as started:
        yield started


@pytest.fixture
def site(whole_site: site_of.Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> site_of.Site:
    """The same, showing its good certificate, and a caller with a password and an empty home."""
    monkeypatch.setenv("PGPASSWORD", site_of.SECRET)
    monkeypatch.setenv("HOME", str(tmp_path))
    whole_site.show("good")
    return whole_site
