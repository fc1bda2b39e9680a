"""Hosts for all tests of this folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from . import there
from .apart import apart

OTHER_HASH = "0123456789abcdef"


DAY_S = 86_400


@pytest.fixture(scope="package")
def two(tmp_path_factory: pytest.TempPathFactory) -> Iterator[there.Hosts]:
    """``alpha`` and ``gamma``, apart where that is allowed; and ``beta`` with another engine."""
    folder = tmp_path_factory.mktemp("hosts")
    engine = folder / "other-engine"
    version = json.dumps({"version": "0.0.1", "build_hash": OTHER_HASH})
    engine.write_text(f"#!/bin/sh\necho '{version}'\n")
    engine.chmod(0o755)
    with apart((0, DAY_S)) as made:
        places = ["127.0.0.3", "127.0.0.4"] if made is None else [apart.place for apart in made]
        here = "127.0.0.1" if made is None else made[0].here
        alpha, gamma = (place if isinstance(place, there.Place) else there.Place(place) for place in places)
        beta = there.Place("127.0.0.2", environment={"PGDYNO_ENGINE": str(engine)})
        with there.hosts(folder, here, {"alpha": alpha, "beta": beta, "gamma": gamma}) as hosts:
            hosts.apart = made or []
            yield hosts


@pytest.fixture(scope="session")
def other_keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates of another authority, with the same names."""
    from pgdyno.hosts import certificates

    folder = tmp_path_factory.mktemp("other")
    certificates.make(folder, ["scheduler", "coordinator", "alpha"])
    assert os.listdir(folder)
    return folder
