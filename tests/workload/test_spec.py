"""What pgbench may be asked to do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.base.errors import InputError
from pgdyno.kinds.pgbench import SCRIPTS, parse_script
from pgdyno.kinds.registry import workload_of
from pgdyno.workload import native, pgbench

if TYPE_CHECKING:
    from pgdyno.base.endpoint import Endpoint


@given(st.lists(st.sampled_from(SCRIPTS), unique=True, min_size=1), st.data())
def test_a_mix_reads_back_in_its_order(names: list[str], data: st.DataObject) -> None:
    weights = [data.draw(st.integers(1, 1000)) for _ in names]
    text = ", ".join(f"{name}@{weight}" for name, weight in zip(names, weights, strict=True))
    assert parse_script(text) == tuple(zip(names, weights, strict=True))


def test_a_weight_is_1_when_it_is_not_given() -> None:
    assert workload_of(script="select-only,simple-update@3").mix == (("select-only", 1), ("simple-update", 3))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"script": "tpcc"}, "there is no script 'tpcc'"),
        ({"script": ""}, "there is no script ''"),
        ({"script": "select-only@0"}, "must be a whole number above 0"),
        ({"script": "select-only@x"}, "must be a whole number above 0"),
        ({"script": "select-only,select-only"}, "occurs twice"),
        ({"clients": 1, "threads": 2}, "a thread needs a client"),
        ({"late_max_ms": 5}, "needs rate_per_s"),
        ({"arrivals": "fixed"}, "needs rate_per_s"),
        ({"engine": "native", "rate_per_s": 5, "think_ms": 5}, "do not think"),
        ({"engine": "pgbench", "rate_per_s": 5, "arrivals": "fixed"}, "pgbench draws its arrivals at random"),
        ({"engine": "pgbench", "think_ms": 5}, "clients of pgbench do not think"),
        ({"kind": "sysbench", "transactions": 5}, 'pgbench cannot run kind = "sysbench"'),
        ({"transactions": 5, "rate_per_s": 5}, "end after a time"),
        ({"transactions": 5, "engine": "native"}, "native runs for a time"),
        ({"transactions": 0}, "transactions"),
        ({"kind": "script"}, "needs files"),
        ({"kind": "script", "files": ({"name": "a.sql", "text": ""},) * 2}, "a.sql appears twice"),
        ({"kind": "script", "script": "tpcb-like"}, 'it is for kind = "pgbench", and this is kind = "script"'),
        ({"rows": 5}, 'it is for kind = "sysbench"'),
        ({"kind": "sysbench", "scale": 5}, 'it is for kind = "pgbench" or "script"'),
        ({"kind": "sysbench", "engine": "pgbench"}, 'pgbench cannot run kind = "sysbench"'),
        ({"kind": "sysbench", "engine": "sysbench"}, "pgdyno runs sysbench's tests with its own driver"),
        ({"kind": "sysbench", "test": "select_random_points", "tables": 2}, "has one table"),
        ({"kind": "sysbench", "test": "oltp"}, "test"),
        ({"options": {}}, 'it is for kind = "sysbench"'),
        ({"kind": "sysbench", "options": {"range": 5}}, "options.range"),
        ({"kind": "sysbench", "options": {"range_size": 0}}, "range_size"),
        ({"kind": "sysbench", "options": {"delta": 3}}, "oltp_read_write does not read delta"),
        ({"kind": "sysbench", "test": "oltp_insert", "options": {"auto_inc": False}}, "auto_inc stays true"),
        ({"kind": "sysbench", "test": "oltp_update_index", "options": {"index_updates": 0}}, "no statement"),
        (
            {
                "kind": "sysbench",
                "test": "oltp_write_only",
                "options": {"index_updates": 0, "non_index_updates": 0, "delete_inserts": 0, "skip_trx": True},
            },
            "no statement",
        ),
        ({"kind": "idle"}, "would never pause"),
        ({"engine": "psql"}, "engine"),
        ({"scale": 0}, "scale"),
        ({"fillfactor": 9}, "fillfactor"),
        ({"protocol": "binary"}, "protocol"),
        ({"client": 3}, "client"),
        ({"seed": -1}, "seed"),
    ],
)
def test_what_is_illegal_is_refused_with_the_reason(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        workload_of(**values)


def test_the_record_says_whether_the_loop_is_closed() -> None:
    assert workload_of().record()["closed"] is True
    open_loop = workload_of(rate_per_s=100).record()
    assert open_loop["closed"] is False
    assert workload_of(**{name: value for name, value in open_loop.items() if name != "closed"}) == workload_of(
        rate_per_s=100, engine="native"
    )


def test_pgdynos_own_driver_drives_unless_pgbench_is_asked_for_or_has_to_count() -> None:
    document = {"kind": "script", "files": ({"name": "a.sql", "text": "SELECT 1;"},)}
    for more in ({}, document, {"kind": "sysbench"}):
        assert workload_of(**more).driver == "native"
    for more in (
        {"engine": "pgbench"},
        document | {"engine": "pgbench"},
        {"transactions": 5},
        document | {"transactions": 5},
    ):
        assert workload_of(**more).driver == "pgbench"


class Unreached:
    """A server that libpq reaches and pgdyno's engine does not."""

    dsn = "service=kerberos"
    binaries = SimpleNamespace(bin_dir="/usr/bin")

    @property
    def endpoint(self) -> Endpoint:
        raise InputError("the engine cannot do what gssencmode asks for", remedy="")


def test_pgbench_drives_where_pgdynos_own_driver_cannot_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pgbench, "refusal", lambda *_: None)
    assert workload_of().connecting(Unreached(), {}).driver == "pgbench"
    assert workload_of(engine="native").connecting(Unreached(), {}).driver == "native", "it was asked for"
    assert workload_of(kind="sysbench").connecting(Unreached(), {}).driver == "native", "there is no other"
    monkeypatch.setattr(pgbench, "refusal", lambda *_: "it is built without GSS")
    with pytest.raises(InputError, match="pgbench of /usr/bin cannot connect"):
        workload_of().connecting(Unreached(), {})


def test_a_test_of_sysbench_is_as_its_original_unless_it_is_said() -> None:
    legacy, other = workload_of(kind="sysbench", test="legacy"), workload_of(kind="sysbench")
    assert (legacy.protocol, other.protocol) == ("simple", "prepared")
    assert legacy.tries_max == other.tries_max == 0
    workload = workload_of(kind="sysbench", test="legacy", protocol="prepared", tries_max=2)
    assert (workload.protocol, workload.tries_max) == ("prepared", 2)


@pytest.mark.parametrize(
    ("values", "writes"),
    [
        ({"script": "select-only"}, False),
        ({"script": "select-only,simple-update"}, True),
        ({"kind": "script", "files": ({"name": "a.sql", "text": "SELECT 1;"},)}, True),
        ({"kind": "sysbench", "test": "oltp_point_select"}, False),
        ({"kind": "sysbench"}, True),
        ({"kind": "idle", "think_ms": 1}, False),
    ],
)
def test_what_may_write_is_known(values: dict[str, Any], writes: bool) -> None:
    assert workload_of(**values).writes is writes


def test_a_record_has_no_keys_of_other_kinds() -> None:
    sysbench = workload_of(kind="sysbench", test="oltp_read_only", tables=4).record()
    assert (sysbench["kind"], sysbench["engine"], sysbench["test"], sysbench["tables"]) == (
        "sysbench",
        "native",
        "oltp_read_only",
        4,
    )
    assert not {"script", "scale", "files", "fillfactor", "arrivals"} & sysbench.keys()
    script = workload_of(kind="script", files=({"name": "a.sql", "text": "SELECT 1;", "weight": 3},)).record()
    assert script["script"] == "a.sql@3"
    assert script["files"] == [{"name": "a.sql", "text": "SELECT 1;", "weight": 3}]


def test_slowed_time_slows_what_a_driver_is_told() -> None:
    clients = workload_of(rate_per_s=800, late_max_ms=20).dilated(8)
    assert (clients.rate_per_s, clients.late_max_ms) == (100, 160)
    assert workload_of(engine="native", think_ms=2).dilated(8).think_ms == 16


def test_options_of_sysbench_are_told_where_they_are_not_its_own() -> None:
    workload = workload_of(kind="sysbench", options={"range_size": 100, "sum_ranges": 4, "skip_trx": True})
    assert workload.options.values_for(workload.test) == {"sum_ranges": 4, "skip_trx": True}
    sysbench = native.document(workload, 0, 1000)["workload"]["sysbench"]
    assert (sysbench["sum_ranges"], sysbench["skip_trx"], "range_size" in sysbench) == (4, True, False)
    record = workload.record()
    assert (record["sum_ranges"], record["range_size"], record["create_secondary"]) == (4, 100, True)
    assert "options" not in record and "delta" not in record


@pytest.mark.parametrize(
    "values",
    [
        {"options": {"point_selects": 0, "simple_ranges": 0, "sum_ranges": 0}},
        {"test": "oltp_write_only", "options": {"index_updates": 0, "non_index_updates": 0, "delete_inserts": 0}},
        {"test": "select_random_ranges", "options": {"number_of_ranges": 3, "delta": 0}},
        {"test": "oltp_delete", "options": {"auto_inc": False, "create_secondary": False}},
    ],
    ids=str,
)
def test_options_that_a_test_reads_are_taken(values: dict[str, Any]) -> None:
    assert workload_of(kind="sysbench", **values).test is not None
