"""What pgbench may be asked to do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.errors import InputError
from pgdyno.workload.spec import SCRIPTS, PgbenchSpec, parse_script


@given(st.lists(st.sampled_from(SCRIPTS), unique=True, min_size=1), st.data())
def test_a_mix_reads_back_in_its_order(names: list[str], data: st.DataObject) -> None:
    weights = [data.draw(st.integers(1, 1000)) for _ in names]
    text = ", ".join(f"{name}@{weight}" for name, weight in zip(names, weights, strict=True))
    assert parse_script(text) == tuple(zip(names, weights, strict=True))


def test_a_weight_is_1_when_it_is_not_given() -> None:
    assert PgbenchSpec(script="select-only,simple-update@3").scripts == (("select-only", 1), ("simple-update", 3))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"script": "tpcc"}, "there is no script 'tpcc'"),
        ({"script": ""}, "there is no script ''"),
        ({"script": "select-only@0"}, "must be a whole number above 0"),
        ({"script": "select-only@x"}, "must be a whole number above 0"),
        ({"script": "select-only,select-only"}, "occurs twice"),
        ({"clients": 1, "threads": 2}, "a thread needs a client"),
        ({"latency_limit_ms": 5}, "needs rate_per_s"),
        ({"scale": 0}, "scale"),
        ({"fillfactor": 9}, "fillfactor"),
        ({"protocol": "binary"}, "protocol"),
        ({"client": 3}, "client"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_is_illegal_is_refused_with_the_reason(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PgbenchSpec.of(**values)


def test_the_record_says_whether_the_loop_is_closed() -> None:
    assert PgbenchSpec().record()["closed"] is True
    open_loop = PgbenchSpec(rate_per_s=100).record()
    assert open_loop["closed"] is False
    assert PgbenchSpec(**{name: value for name, value in open_loop.items() if name not in ("kind", "closed")})
