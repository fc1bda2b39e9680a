"""HammerDB's lines and its time profile: what is read of them, and that percentiles and sums of a profile are kept."""

from __future__ import annotations

import pytest

from pgdyno.analysis.distribution import ValueCounts
from pgdyno.kinds.hammerdb.output import HammerdbOutput
from pgdyno.kinds.hammerdb.record import TransactionTimes, read_profile

LINES = """\
HammerDB CLI v6.0
Vuser 1 created MONITOR - WAIT IDLE
Vuser 1:Beginning rampup time of 2 minutes
12 PostgreSQL tpm
Vuser 1:Rampup complete, Taking start Transaction Count.
Vuser 3:Payment Procedure Error set RAISEERROR for Details
Vuser 1:1  ...,
 138120 PostgreSQL tpm
Vuser 1:Test complete, Taking end Transaction Count.
Vuser 1:2 Active Virtual Users configured
{result}
Vuser 1:FINISHED SUCCESS
Vuser 2:FINISHED SUCCESS
Error in Virtual User 3: lost sw0rdfish
Vuser 3:FINISHED FAILED
"""
PROFILE = """\
PostgreSQL Hammerdb Time Profile Report @ Wed Nov 25
+-+-+-+-+
>>>>> VIRTUAL USER 2 : ELAPSED TIME : 300000ms
>>>>> PROC: NEWORD
CALLS: 700\tMIN: 0.500ms\tAVG: 3.000ms\tMAX: 9.000ms\tTOTAL: 2100.000ms
P99: 9.000ms\tP95: 9.000ms\tP75: 9.000ms\tP50: 2.000ms\tP25: 1.000ms\tSD: 0.000ms\tRATIO: 1.000%
>>>>> PROC: SLEV
CALLS: 200\tMIN: 0.500ms\tAVG: 1.000ms\tMAX: 2.000ms\tTOTAL: 200.000ms
P99: 2.000ms\tP95: 1.500ms\tP50: 1.000ms\tSD: 1.000\tRATIO: 2.000%
+-+-+-+-+
>>>>> VIRTUAL USER 3 : ELAPSED TIME : 300000ms
>>>>> PROC: NEWORD
CALLS: 300\tMIN: 0.500ms\tAVG: 1.000ms\tMAX: 40.000ms\tTOTAL: 300.000ms
P99: 9.000ms\tP95: 9.000ms\tP75: 9.000ms\tP50: 9.000ms\tP25: 9.000ms\tSD: 0.000ms\tRATIO: 1.000%
+-+-+-+-+
>>>>> SUMMARY OF 2 ACTIVE VIRTUAL USERS : MEDIAN ELAPSED TIME : 300000ms
>>>>> PROC: NEWORD
CALLS: 2000\tMIN: 0.500ms\tAVG: 2.400ms\tMAX: 40.000ms\tTOTAL: 4800.000ms
P99: 9.000ms\tP95: 5.000ms\tP75: 3.000ms\tP50: 2.000ms\tP25: 1.000ms\tSD: 1.000ms\tRATIO: 60.000%
>>>>> PROC: SLEV
CALLS: 400\tMIN: 0.500ms\tAVG: 1.000ms\tMAX: 2.000ms\tTOTAL: 400.000ms
P99: 2.000ms\tP95: 1.500ms\tP50: 1.000ms\tSD: 1.000\tRATIO: 2.000%
+-+-+-+-+
"""
"""As 4.12 writes it: the summary has every call twice."""


@pytest.mark.parametrize(
    "result",
    [
        "Vuser 1:TEST RESULT : System achieved 55120 NOPM from 129729 PostgreSQL TPM",
        "Vuser 1:TEST RESULT : System achieved 129729 PostgreSQL TPM at 55120 NOPM",
    ],
)
def test_what_a_run_says(result: str) -> None:
    output = HammerdbOutput(lambda line: line.replace("sw0rdfish", "***"))
    for number, line in enumerate(LINES.format(result=result).splitlines()):
        output.take(line, 1000 + number)
    assert (output.version, output.nopm, output.tpm, output.users) == ("6.0", 55120, 129729, 2)
    assert (output.bench_ns, output.begin_ns, output.end_ns) == (1002, 1004, 1008)
    assert output.counters == [(1003, 12), (1007, 138120)]
    assert output.failed == output.failed_measured == {"payment": 1}
    assert output.finished == {"SUCCESS": 2, "FAILED": 1}
    assert output.wrong == ["Error in Virtual User 3: lost ***"]
    assert output.whole


def test_percentiles_are_the_summarys_and_calls_are_added_up_over_the_users() -> None:
    result = read_profile(PROFILE)
    assert result is not None
    assert (result.users, set(result.times), result.complete) == (2, {"new_order", "stock_level"}, False)
    assert (result.times["new_order"].calls, result.times["stock_level"].calls) == (1000, 200)
    assert result.times["new_order"].mean_ms == pytest.approx(2.4)
    assert result.times["stock_level"].marks_ms == ((0.0, 0.5), (0.5, 1.0), (0.95, 1.5), (0.99, 2.0), (1.0, 2.0))
    assert read_profile("nothing") is None


@pytest.mark.parametrize("count", [1000, 137, 2000])
def test_what_is_made_of_a_profile_has_its_percentiles_and_its_mean(count: int) -> None:
    profile = read_profile(PROFILE)
    assert profile is not None
    for times, allowed in ((profile.times["new_order"], 0.02), (profile.times["stock_level"], 0.02)):
        result = ValueCounts.of(times.buckets_us(count).items())
        assert result.total == count
        for share, value_ms in times.marks_ms[1:]:
            assert result.percentile(100 * share) == pytest.approx(1e3 * value_ms)
        assert result.sum / count == pytest.approx(1e3 * times.mean_ms, rel=allowed + 5 / count)


def test_few_calls_and_none() -> None:
    times = TransactionTimes(3, 2.0, ((0.0, 1.0), (0.5, 2.0), (0.95, 3.0), (1.0, 3.0)))
    assert times.buckets_us(0) == {}
    assert sum(times.buckets_us(1).values()) == 1
    assert sum(times.buckets_us(3).values()) == 3
