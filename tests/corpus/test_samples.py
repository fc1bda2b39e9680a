"""Samples of volumes as sysstat, CloudWatch, Azure Monitor and NVMe write them: each has its right value, or is refused with the reason.

A case has ``flag`` and ``files``, and ``devices``, ``interval_s``, ``first_report`` where the user would give them. ``[right]`` has
what must be read: figures are means over the time unless they say otherwise. ``[refused]`` has the code and the data of the error.
``[capped]`` has what ``pgdyno size`` says of a recording that stood at its limit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from pgdyno.advise.size.demand import MIB
from pgdyno.advise.size.fleet import File, Terms
from pgdyno.advise.size.measured import DeviceSamples, IntervalSample
from pgdyno.advise.size.presentation import document
from pgdyno.advise.size.reading import counters
from pgdyno.base.errors import InputError
from tests.corpus import Case, cases

ROUNDED = 0.002
"""Of a figure: samples are printed with two decimals."""


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Times without a zone are those of the machine that reads them."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


def read(case: Case) -> DeviceSamples:
    """The load of a case, as ``pgdyno size`` and ``pgdyno diagnose`` read it."""
    texts = [(case.path(name).read_text(encoding="utf-8", errors="replace"), name) for name in case.expected["files"]]
    if case.expected["flag"] == "--nvme":
        return counters.read([(text, name, 0.0) for text, name in texts])
    ((text, name),) = texts
    first = case.expected.get("first_report")
    keep_first = None if first is None else first == "keep"
    return File(
        case.expected["flag"],
        name,
        text,
        tuple(case.expected.get("devices", ())),
        case.expected.get("interval_s"),
        keep_first,
    ).read()


def mean(measured: DeviceSamples, figure: str) -> float | None:
    """A figure over the time; None where no sample has it."""
    known = [(sample.seconds, value) for sample in measured.samples if (value := _value(sample, figure)) is not None]
    return sum(seconds * value for seconds, value in known) / sum(seconds for seconds, _ in known) if known else None


def _value(sample: IntervalSample, figure: str) -> float | None:
    if figure.startswith("exceeded_"):
        return dict[str, float](sample.exceeded).get(figure.removeprefix("exceeded_"))
    values: dict[str, float | None] = {
        "iops": sample.ops_per_s,
        "reads": sample.read_ops_per_s,
        "writes": sample.write_ops_per_s,
        "mib_per_s": sample.bytes_per_s / MIB,
        "queue": sample.queue_length,
        "latency_ms": sample.latency_ms,
    }
    return values[figure]


@pytest.mark.parametrize("case", cases("samples"))
def test_a_sample_is_read_right_or_refused_with_its_reason(case: Case) -> None:
    assert {"right", "refused", "capped"} & set(case.expected), "a case says what is expected"
    if "refused" in case.expected:
        with pytest.raises(InputError) as refused:
            advised(case)
        expected = case.expected["refused"]
        assert refused.value.code == expected["code"], refused.value.message
        assert refused.value.remedy
        for name, value in expected.get("data", {}).items():
            assert refused.value.data[name] == value, refused.value.data
        for word in expected.get("remedy", ()):
            assert word in refused.value.remedy
        for word in expected.get("not_remedy", ()):
            assert word not in refused.value.remedy
        return
    if "right" in case.expected:
        require_right(read(case), case.expected["right"])
    if "capped" in case.expected:
        require_capped(advised(case), case.expected["capped"])


def advised(case: Case) -> dict[str, Any]:
    """What ``pgdyno size --json`` says, without arrays and for gp3 alone: of interest is what it says of the recording."""
    measured = read(case)
    if "size" not in case.expected:
        return {}
    terms = Terms(99, 0.2, 500 << 30, among=("gp3",), members_max=1, bought=case.expected["size"].get("bought"))
    return document(terms.advice(measured))


def require_right(measured: DeviceSamples, right: dict[str, Any]) -> None:
    """Each key of ``[right]`` holds."""
    for key, value in right.items():
        if key == "notes":
            for word in value:
                assert any(word in note for note in measured.notes), measured.notes
        elif key == "no_notes":
            assert not any(word in note for word in value for note in measured.notes), measured.notes
        elif key == "among":
            assert list(measured.among) == value
        elif key == "device":
            assert measured.device == value
        elif key == "origin":
            assert measured.origin == value
        elif key == "intervals":
            assert len(measured.samples) == value
        elif key == "seconds":
            assert measured.seconds == pytest.approx(value)
        elif key == "lengths_s":
            assert [sample.seconds for sample in measured.samples] == pytest.approx(value)
        elif key == "first_at":
            assert measured.samples[0].at_s == value.timestamp()
        elif key == "iops_max":
            assert measured.busiest_ops_per_s == pytest.approx(value, rel=ROUNDED)
        else:
            assert mean(measured, key) == pytest.approx(value, rel=ROUNDED, abs=0.005), key


def require_capped(document: dict[str, Any], expected: dict[str, Any]) -> None:
    """What is said of the limit that the recording stood at; ``none``: nothing is said."""
    capped = document["demand"]["capped"]
    if expected.get("none"):
        assert capped is None
        return
    assert capped is not None
    for key, value in expected.items():
        if key == "needed_iops":
            assert document["demand"]["needed_iops"] == pytest.approx(value, rel=ROUNDED)
        elif key in ("is_certain", "unit"):
            assert capped[key] == value
        else:
            assert capped[key] == pytest.approx(value, rel=ROUNDED), key
