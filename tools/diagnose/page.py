"""The reference's page on diagnosis: the confusion matrices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.binding.consumers import TITLES as CONSUMERS
from pgdyno.analysis.binding.limits import LIMITS, TITLES
from tools.diagnose.claims import JUDGED_MIN, OF_VOLUMES, WHOLE
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
transactions; the verdict sees none of them. Rules and thresholds have the digest `{rules}`, the engine `{build_hash}`.

{extent}

Views are the same watch with less of it. *SQL alone* leaves out what the host showed, as for a server elsewhere; where a limit cannot be seen from there, every answer
without high confidence is right. CloudWatch's files have what the emulated volume counted, in periods of the watch's own length and not of 60 s.
What fills a volume is what the load was made of, and not measured by a control without it. The loads of a server follow each other, so pages that an earlier one
left to be written may be among the requests.
No real EBS, RDS or Aurora server was diagnosed.
"""


def render(found: Sequence[Measured], answers: Sequence[Answer], judged: Sequence[Claim], **said: str) -> str:
    """The text of the page."""
    whole = [one for one in answers if one.view == WHOLE]
    older = sum(one.facts.version.startswith("15") for one in whole)
    extent = f"{len(whole)} scenarios are judged, {older} of them on PostgreSQL 15."
    if len(whole) < JUDGED_MIN:
        extent += f" **This record is partial**: {JUDGED_MIN} are asked for, so the shares below are those of what was measured."
    return "\n\n".join([
        f"# Diagnosis\n\n<!-- Written by `{COMMAND}` from tools/diagnose. -->",
        INTRODUCTION.strip().format(extent=extent, **said),
        claims_table(judged),
        "## Views",
        _views(answers),
        "## Confusion matrices\n\nRows: the limit that bound. Columns: the limit that was named; in brackets those of them with high confidence.",
        *(f"### {view}\n\n{_matrix([one for one in answers if one.view == view])}" for view in VIEWS),
        *_consumers(whole),
        *_wrong(answers),
        *_not_judged(found),
    ]) + "\n"  # fmt: skip


def _views(answers: Sequence[Answer]) -> str:
    rows = []
    for view in VIEWS:
        of_it = [one for one in answers if one.view == view]
        seen = [one for one in of_it if one.visible]
        wrong = sum(one.confidently_wrong for one in of_it)
        rows.append([view, f"{sum(one.right for one in seen)} of {len(seen)}",
                     f"{len(of_it) - len(seen)}", str(wrong)])  # fmt: skip
    return md.table(["view", "right", "limit not to be seen from there", "wrong with high confidence"], rows)


def _matrix(answers: Sequence[Answer]) -> str:
    named = [*(limit for limit in LIMITS if any(one.limit == limit for one in answers)), None]
    rows = []
    for truth in LIMITS:
        of_it = [one for one in answers if one.facts.limit == truth]
        if of_it:
            rows.append([TITLES[truth], *(_cell([one for one in of_it if one.limit == limit]) for limit in named)])
    return md.table(["bound", *(TITLES[limit] if limit else "unknown" for limit in named)], rows)


def _cell(answers: Sequence[Answer]) -> str:
    high = sum(one.confidence == "high" for one in answers)
    return f"{len(answers)} ({high})" if answers else ""


def _consumers(whole: Sequence[Answer]) -> list[str]:
    known = [one for one in whole if one.facts.consumer is not None and one.facts.limit in OF_VOLUMES]
    if not known:
        return []
    titles = CONSUMERS | {None: "none"}
    meant = list(dict.fromkeys(one.facts.consumer for one in known))
    named = list(dict.fromkeys(one.consumer for one in known))
    rows = [
        [
            titles[truth],
            *(str(sum((one.facts.consumer, one.consumer) == (truth, name) for one in known) or "") for name in named),
        ]
        for truth in meant
    ]
    text = "## Consumers\n\nRows: what filled the volume that bound. Columns: what was named as the largest."
    return [text, md.table(["filled it", *(titles[name] for name in named)], rows)]


def _wrong(answers: Sequence[Answer]) -> list[str]:
    rows = [
        [one.facts.key, one.view, TITLES[one.limit] if one.limit else "unknown", one.confidence,
         ", ".join(f"{role} {spec}" for role, spec in one.facts.volumes.items()), one.facts.load]
        for one in answers if not one.right
    ]  # fmt: skip
    return ["## Wrong", md.table(["scenario", "view", "named", "confidence", "volumes", "load"], rows)] if rows else []


def _not_judged(found: Sequence[Measured]) -> list[str]:
    rows = [[one.facts.key, one.facts.load, one.refuted] for one in found if one.refuted is not None]
    text = "## Not judged\n\nThe account does not say that what was meant to bind did."
    return [text, md.table(["scenario", "load", "why"], rows)] if rows else []
