"""Measures a draw and writes its page: ``python -m tools.diagnose``."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from pgdyno.base.errors import HostError, PgdynoError
from pgdyno.machine import preflight
from pgdyno.machine.waiting import wait_until
from tools.diagnose import claims, page
from tools.diagnose.claims import said
from tools.diagnose.measure import measure
from tools.diagnose.record import FACTS, Facts, Measured, digest, folder_of, kept, left
from tools.diagnose.scenarios import FAMILIES, OLDER, Stand, draw, scenarios
from tools.diagnose.stand import DataSets, running
from tools.diagnose.thinned import thinned
from tools.diagnose.truth import refuted
from tools.diagnose.views import answers
from tools.measured import code, ended, none_yet, published

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.diagnose.record import Answer
    from tools.diagnose.scenarios import Load
    from tools.fidelity.claim import Claim

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "diagnose"
PAGE = ROOT / "docs" / "reference" / "diagnosis.md"
SEED = 20_261_201
PATIENCE_S = 600.0
ROUNDS = 4
"""Stands of each family and version."""


def main() -> int:
    """The command line; exit code 1 when a claim does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tools.diagnose", description=__doc__)
    parser.add_argument("--seed", type=int, default=SEED, help="of the draw [%(default)s]")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="stands of each family and version [%(default)s]")
    parser.add_argument("--family", choices=list(FAMILIES), action="append", help="only these stands; repeatable")
    parser.add_argument("--seconds", type=float, help="begin no further stand after this time; the next call resumes")
    parser.add_argument(
        "--also",
        type=Path,
        action="append",
        default=[],
        metavar="RECORD",
        help="a record of the draw by another engine, whose scenarios stand where this engine has none; the page says how many; repeatable",
    )
    parser.add_argument("--list", action="store_true", help="print the draw")
    parser.add_argument(
        "--apart",
        type=float,
        metavar="MS",
        help="measure nothing: ask the rules about what is there as if looks at the sessions had"
        " begun at least so many ms after one another; write no page",
    )
    parser.add_argument("--record", type=Path, help="the record that --apart asks about [this engine's]")
    parser.add_argument(
        "--page", action="store_true", help="measure nothing: ask the rules about what is there, write the page"
    )
    return ended(partial(_run, parser.parse_args()))


def _run(namespace: argparse.Namespace) -> int:
    stands = [
        item
        for item in draw(namespace.seed, namespace.rounds)
        if namespace.family is None or item.family in namespace.family
    ]
    if namespace.list:
        print("\n".join(f"{key}: {stand.volumes} {load.consumer or ''}" for key, stand, load in scenarios(stands)))
        return 0
    every = draw(namespace.seed, namespace.rounds)
    if namespace.apart is not None:
        return code(
            try_apart(measured(every, [namespace.record or folder_of(RESULTS, namespace.seed)]), namespace.apart)
        )
    if not namespace.page:
        collect(stands, namespace.seed, namespace.seconds, namespace.also)
    return code(write(every, namespace.seed, namespace.also))


def collect(stands: Sequence[Stand], seed: int, seconds: float | None = None, also: Sequence[Path] = ()) -> None:
    """Measure what is missing of some stands here and in other records, until the time is over."""
    preflight.require_root("the record of diagnosis")
    preflight.require_fuse()
    preflight.require_programs("iostat")
    if not OLDER.is_dir():
        raise HostError(f"there is no PostgreSQL 15 in {OLDER}", remedy="install Debian's postgresql-15")
    folder, begin = folder_of(RESULTS, seed), time.monotonic()
    missing = left([folder, *also], list(scenarios(list(stands))))
    print(f"rules {digest()}; {len(missing)} scenarios are missing", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="pgdyno-diagnose-") as name, DataSets(Path(name)) as data_sets:
        for place, (_, group) in enumerate(groupby(missing, key=lambda item: item[1].number)):
            if place and seconds is not None and time.monotonic() - begin > seconds:
                print("the time is over; the same command resumes", file=sys.stderr)
                return
            _patiently(partial(_stand, list(group), data_sets, Path(name), folder))


def _patiently(make: Callable[[], None]) -> None:
    """Make a stand; wait while another run on this machine holds what exists once."""
    failed: list[HostError] = []

    def made() -> bool:
        try:
            make()
        except HostError as error:
            if not failed:
                print(f"waiting: {error}", file=sys.stderr, flush=True)
            failed.append(error)
            return False
        return True

    if not wait_until(made, PATIENCE_S):
        raise failed[-1]


def _stand(group: Sequence[tuple[str, Stand, Load]], data_sets: DataSets, scratch: Path, folder: Path) -> None:
    """The scenarios of one stand. One that breaks is said and is missing still."""
    stand = group[0][1]
    with running(stand, data_sets, scratch) as server:
        for key, _, load in left([folder], group):
            begin = time.monotonic()
            shutil.rmtree(folder / key, ignore_errors=True)
            try:
                facts = measure(server, stand, load, key, folder / key)
            except (PgdynoError, psycopg.Error, OSError, AssertionError) as error:
                print(f"{key}: {error!r:.300}", file=sys.stderr, flush=True)
                continue
            state = refuted(facts, load.clients) or "labelled"
            print(f"{key}: {state} ({time.monotonic() - begin:.0f} s)", file=sys.stderr, flush=True)


def measured(stands: Sequence[Stand], folders: Sequence[Path]) -> list[Measured]:
    """What is there of a draw, of each scenario in the first folder that has it; :class:`PgdynoError` where nothing is."""
    results = []
    for key, _, load in scenarios(list(stands)):
        if (folder := kept(folders, key)) is not None:
            facts = Facts.model_validate_json((folder / FACTS).read_text())
            results.append(Measured(folder, facts, refuted(facts, load.clients)))
    if not results:
        raise none_yet("diagnose")
    return results


def write(stands: Sequence[Stand], seed: int, also: Sequence[Path] = ()) -> list[Claim]:
    """Ask the rules about all that was measured, write the page, print the claims."""
    measureds = measured(stands, [folder_of(RESULTS, seed), *also])
    judged = _judged(measureds)
    verdicts = claims.judge(judged)
    return published(PAGE, page.render(measureds, judged, verdicts, seed=str(seed), rules=digest()), verdicts)


def try_apart(measureds: Sequence[Measured], apart_ms: float) -> list[Claim]:
    """Ask the rules about fewer looks, print the claims and what each view says otherwise, and return the claims."""
    with tempfile.TemporaryDirectory(prefix="pgdyno-diagnose-") as scratch:
        fewer = _judged([thinned(measured, apart_ms, Path(scratch)) for measured in measureds])
    whole = _judged(measureds)
    for before, after in zip(whole, fewer, strict=True):
        if (before.limit, before.consumer) != (after.limit, after.consumer):
            named = f"{after.limit or 'unknown'} ({after.confidence}), {after.consumer}"
            print(f"otherwise: {said(before)}, {before.consumer}; with fewer looks: {named}")
    sure = [sum(answer.confidence == "high" for answer in judged) for judged in (whole, fewer)]
    print(f"with high confidence: {sure[1]} of {len(fewer)} answers; with all looks {sure[0]}")
    verdicts = claims.judge(fewer)
    print("\n".join(map(str, verdicts)))
    return verdicts


def _judged(measureds: Sequence[Measured]) -> list[Answer]:
    with tempfile.TemporaryDirectory(prefix="pgdyno-diagnose-") as scratch:
        return [
            answer for measured in measureds if measured.refuted is None for answer in answers(measured, Path(scratch))
        ]


if __name__ == "__main__":
    sys.exit(main())
