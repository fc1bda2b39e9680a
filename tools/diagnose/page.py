"""The reference's page on diagnosis: claims, views and the confusion matrix."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

from pgdyno.analysis.binding.consumers import TITLES as CONSUMERS
from pgdyno.analysis.binding.rules import LIMITS, TITLES
from tools.diagnose.claims import JUDGED_MIN, WHOLE
from tools.diagnose.truth import LEFT_MAX, consumer_of
from tools.diagnose.views import VIEWS
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.diagnose.record import Answer, Measured
    from tools.fidelity.claim import Claim

COMMAND = "make bench ONLY=diagnose"
INTRODUCTION = """
How often [`pgdyno diagnose`](../guide/diagnose.md) names the limit that binds. Each scenario is a PostgreSQL on emulated volumes under a load that is drawn
from seed {seed}, with one limit made to bind, half of them on the embedded PostgreSQL 18 and half on Debian's 15. It is watched from outside for 6 s as a role with
`pg_monitor`. What bound is known from the emulator's own account, the kernel's account of CPU, or a control without the limit that does 1.25 times the
transactions; the verdict sees none of them. Rules and thresholds have the digest `{rules}`, {engines}.

{extent}

Views are the same watch with less of it. *SQL alone* leaves out what the host showed, as for a server elsewhere; where a limit cannot be seen from there, every answer
without high confidence is right. CloudWatch's files have what the emulated volume counted, in periods of the watch's own length and not of 60 s.
What fills a volume is known from a control: the same load with that consumer on a volume of its own, or switched off. If the volume then does at most {left} of
the requests, or of the bytes where its throughput bound, it was the largest; otherwise it is not judged. A load that is one consumer alone is switched off as a whole.
No real EBS, RDS or Aurora server was diagnosed.
"""
MATRIX = "With all that can be seen. Rows: the limit that bound. Columns: the limit that was named; in brackets those of them with high confidence."


def render(measureds: Sequence[Measured], answers: Sequence[Answer], judged: Sequence[Claim], **text: str) -> str:
    """The text of the page."""
    whole = [answer for answer in answers if answer.view == WHOLE]
    older = sum(answer.facts.version.startswith("15") for answer in whole)
    extent = f"{len(whole)} scenarios are judged, {older} of them on PostgreSQL 15."
    if len(whole) < JUDGED_MIN:
        extent += f" **This record is partial**: {JUDGED_MIN} are asked for, so the shares below are those of what was measured."
    engines = _engines([measured for measured in measureds if measured.refuted is None])
    return "\n\n".join([
        f"# Diagnosis\n\n<!-- Written by `{COMMAND}` from tools/diagnose. -->",
        INTRODUCTION.strip().format(extent=extent, left=f"{LEFT_MAX:.0%}", engines=engines, **text),
        claims_table(judged),
        "## Views",
        _views(answers),
        f"## Confusion matrix\n\n{MATRIX}\n\n{_matrix(whole)}",
        *_consumers(whole),
        *_wrong(answers),
        *_not_judged(measureds),
    ]) + "\n"  # fmt: skip


def _engines(judged: Sequence[Measured]) -> str:
    """Whose volumes they were; of several engines how many of each, and how much else the machine did."""
    idle: dict[str, list[float]] = {}
    for measured in judged:
        idle.setdefault(measured.engine, []).append(measured.facts.idle)
    if len(idle) <= 1:
        return f"the engine `{''.join(idle)}`"
    return "the engines " + " and ".join(
        f"`{engine}` ({len(shares)} judged, at the median with {statistics.median(shares):.0%} of the machine's CPU idle)"
        for engine, shares in idle.items()
    )


def _views(answers: Sequence[Answer]) -> str:
    rows = []
    for view in VIEWS:
        of_it = [answer for answer in answers if answer.view == view]
        seen = [answer for answer in of_it if answer.visible]
        wrong = sum(answer.confidently_wrong for answer in of_it)
        rows.append([view, f"{sum(item.right for item in seen)} of {len(seen)}",
                     f"{len(of_it) - len(seen)}", str(wrong)])  # fmt: skip
    return md.table(["view", "right", "limit not to be seen from there", "wrong with high confidence"], rows)


def _matrix(answers: Sequence[Answer]) -> str:
    named = [*(limit for limit in LIMITS if any(answer.limit == limit for answer in answers)), None]
    rows = []
    for truth in LIMITS:
        of_it = [answer for answer in answers if answer.facts.limit == truth]
        if of_it:
            rows.append(
                [TITLES[truth], *(_cell([answer for answer in of_it if answer.limit == limit]) for limit in named)]
            )
    return md.table(["bound", *(TITLES[limit] if limit else "unknown" for limit in named)], rows)


def _cell(answers: Sequence[Answer]) -> str:
    high = sum(answer.confidence == "high" for answer in answers)
    return f"{len(answers)} ({high})" if answers else ""


def _consumers(whole: Sequence[Answer]) -> list[str]:
    known = [(truth, answer) for answer in whole if (truth := consumer_of(answer.facts)) is not None]
    if not known:
        return []
    titles = CONSUMERS | {None: "none"}
    named = list(dict.fromkeys(item.consumer for _, item in known))
    rows = []
    for truth in dict.fromkeys(truth for truth, _ in known):
        of_it = [item for each, item in known if each == truth]
        left = max(item.facts.consumer_left or 0.0 for item in of_it)
        rows.append(
            [titles[truth], f"{left:.0%}", *(str(sum(item.consumer == name for item in of_it) or "") for name in named)]
        )
    text = (
        "## Consumers\n\nRows: what filled the volume that bound. Columns: what was named as the largest; the second has the most that was left"
        " of the volume's use without it."
    )
    return [text, md.table(["filled it", "left", *(titles[name] for name in named)], rows)]


def _wrong(answers: Sequence[Answer]) -> list[str]:
    rows = [
        [answer.facts.key, answer.view, TITLES[answer.limit] if answer.limit else "unknown", answer.confidence,
         ", ".join(f"{role} {spec}" for role, spec in answer.facts.volumes.items()), answer.facts.load]
        for answer in answers if not answer.right
    ]  # fmt: skip
    return ["## Wrong", md.table(["scenario", "view", "named", "confidence", "volumes", "load"], rows)] if rows else []


def _not_judged(measureds: Sequence[Measured]) -> list[str]:
    rows = [
        [measured.facts.key, measured.facts.load, measured.refuted]
        for measured in measureds
        if measured.refuted is not None
    ]
    for measured in measureds:
        facts = measured.facts
        if measured.refuted is None and facts.consumer_left is not None and consumer_of(facts) is None:
            why = f"{facts.consumer_left:.0%} of the volume's use was left without {CONSUMERS[facts.consumer or 'not_explained']}"
            rows.append([facts.key, facts.load, f"its consumer: {why}"])
    text = "## Not judged\n\nThe account does not say that what was meant to bind, or to fill the volume, did."
    return [text, md.table(["scenario", "load", "why"], rows)] if rows else []
