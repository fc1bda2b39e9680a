"""What loading must keep to, judged on a record. The bars are those of the issue that asked for the loader."""

from __future__ import annotations

from pgdyno.base.errors import InputError
from tools.fidelity.claim import Claim
from tools.loader.arm import BASELINES, COMMAND, COMMAND_INDEXED, COMMAND_SCATTERED, ENGINE, GZIP, PEER, SERVER
from tools.loader.arm import PSQL as BESIDE_PSQL
from tools.loader.record import MEMORY_BYTES_MAX, Record, beside, bounds, client_share, ratio

BESIDE_SERVER_MIN = 0.95
BESIDE_PSQL_MIN = 1.6
CLIENT_SHARE_MAX = 0.10
GZIP_MIN = 0.9
INDEXED_MIN = 4.0
PLAIN, PSQL, CLIENT, PACKED = "plain file beside the server", "plain file beside psql", "client's CPU", "gzip"
INDEXED, SCATTERED, MEMORY = "three indexes", "three indexes, keys in no order", "memory"
TIMES_PEER_MAX = 1.02
"""Of the peer's time: a change that is not about speed may cost so much."""
NAMES = (PLAIN, PSQL, CLIENT, PACKED, INDEXED, SCATTERED, MEMORY)


def judge(record: Record) -> list[Claim]:
    """The claims that the record has figures for, in the order of :data:`NAMES`."""
    judged = [_beside(record, PLAIN, ENGINE, SERVER, BESIDE_SERVER_MIN)]
    if record.of(BESIDE_PSQL):
        judged.append(_beside(record, PSQL, ENGINE, BESIDE_PSQL, BESIDE_PSQL_MIN))
    judged += [_client(record), _packed(record)]
    for name, arm in ((INDEXED, COMMAND_INDEXED), (SCATTERED, COMMAND_SCATTERED)):
        if record.of(BASELINES[arm]):
            judged.append(_beside(record, name, arm, BASELINES[arm], INDEXED_MIN))
    return [*judged, _memory(record)]


def beside_peer(record: Record) -> Claim:
    """How many times as long this checkout takes as its peer, pair by pair. :class:`InputError` for a single pair."""
    result = beside(record, PEER, COMMAND)
    if result.pairs < 2:
        raise InputError("a single pair has no interval", remedy="ask for --rounds 2 or more")
    interval = f"{result.value:.3f} ({result.low:.3f} to {result.high:.3f}) × in {result.pairs} pairs"
    return Claim("beside the peer", f"≤ {TIMES_PEER_MAX:g} × its time", interval, result.value <= TIMES_PEER_MAX)


def _beside(record: Record, name: str, arm: str, other: str, least: float) -> Claim:
    result = beside(record, arm, other)
    return Claim(name, f"≥ {least:g} × {other}", f"{result} ×", result.value >= least)


def _client(record: Record) -> Claim:
    ratio = client_share(record, ENGINE)
    shown = f"{ratio.value:.1%} ({ratio.low:.1%} to {ratio.high:.1%})"
    return Claim(CLIENT, f"≤ {CLIENT_SHARE_MAX:.0%} of the server's", shown, ratio.value <= CLIENT_SHARE_MAX)


def _packed(record: Record) -> Claim:
    result = ratio([bound.reached_per_s / bound.per_s for bound in bounds(record, GZIP, ENGINE)])
    bar = f"≥ {GZIP_MIN:g} × min(1/D, cores/(D + C))"
    return Claim(PACKED, bar, f"{result} ×", result.value >= GZIP_MIN)


def _memory(record: Record) -> Claim:
    most = max((run.rss_bytes_max or 0 for run in record.runs), default=0)
    return Claim(
        MEMORY, f"≤ {MEMORY_BYTES_MAX >> 20} MiB", f"{most / (1 << 20):.0f} MiB at most", 0 < most <= MEMORY_BYTES_MAX
    )
