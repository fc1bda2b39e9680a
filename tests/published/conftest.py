"""A small document to break rules in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

GOOD = """
schema_version = 1
name = "post"
title = "A post"
publisher = "someone"
published = "2025-01-01"
about = "Two volumes"
[stated]
server = "one"
[[figure]]
name = "tps_a"
measures = "transactions per second"
of = "a"
value = 100
unit = "TPS"
at = "Results"
[[figure]]
name = "tps_b"
measures = "transactions per second"
of = "b"
value = 208
unit = "TPS"
at = "Results"
[[figure]]
name = "ratio"
measures = "ratio of TPS"
value = 2.08
unit = "times"
at = "Results"
[[table]]
name = "cells"
at = "Table {table}"
axes = ["table", "vcpus"]
columns = [{ name = "tps", measures = "transactions per second", unit = "TPS" }, { name = "qps", measures = "statements per second", unit = "QPS" }]
rows = [["1-1", 2, 10.5, 210.0], ["1-1", 4, 20, 400]]
[[comparison]]
name = "b to a"
high = "tps_b"
low = "tps_a"
stated = "ratio"
unanswered = "nobody ran it"
[[arithmetic]]
claim = "statements of a transaction"
formula = "min(cells_qps / cells_tps)"
unit = "statements"
stated = 20
[[unstated]]
what = "memory"
low = 0.125
high = 32
unit = "GiB"
why = "the default, and a quarter"
"""

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the document with parts replaced (old, new), and returns its file."""

    def written(*changes: tuple[str, str]) -> Path:
        text = GOOD
        for old, new in changes:
            assert old in text
            text = text.replace(old, new, 1)
        path = tmp_path / "catalog" / "published" / "post.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return written
