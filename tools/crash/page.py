"""The reference's page on power cuts: a sound server, planted bugs, and what each check is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis import durability
from pgdyno.durability.crash import known
from pgdyno.durability.crash.examine import CHECKS
from pgdyno.durability.crash.recovery import CUTS_1_IN, CUTS_OF_ONE
from tools.crash.cells import mutants, planted, recovering, sound
from tools.fidelity.claim import Claim
from tools.measured import claims_table
from tools.reference import markdown as md

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.crash.cells import Cell
    from tools.crash.record import Found, Record

CUTS = 10_000
MUTATION_SCORE = 0.95
CUTS_PER_MINUTE = 200
MINUTES_MAX = 75
MEASURED = """
Measured on {cores} cores, Linux {kernel}, with PostgreSQL {postgres}, seed {seed} and engine `{build_hash}`. [Power cuts](../concept/crash.md) says
what a cut, a reading and a check are, and what they do not show.
"""


def pairs(record: Record, cells: Sequence[Cell]) -> list[tuple[Cell, Found | None]]:
    """Cells with what is known of each."""
    by_name = {item.name: item for item in record.found}
    return [(cell, by_name.get(cell.name)) for cell in cells]


def _sound(record: Record) -> list[Found]:
    """What is known of servers without a planted bug."""
    return [item for _, item in pairs(record, [*sound(), *recovering()]) if item is not None]


def judge_crash(record: Record) -> list[Claim]:
    """The claims on a sound server and on planted bugs."""
    made = _sound(record)
    cuts, failed, explained = (sum(getattr(item, what) for item in made) for what in ("cuts", "failed", "known"))
    minutes = sum(item.cuts / item.cuts_per_minute for item in made if item.cuts_per_minute)
    again = sum(item.cuts for _, item in pairs(record, recovering()) if item is not None)
    bugs = pairs(record, planted())
    tried = [(cell, item) for cell, item in bugs if item is not None]
    caught = [cell for cell, item in tried if _caught(cell, item)]
    missed = tuple(cell.name for cell, _ in tried if cell not in caught)
    return [
        Claim(
            "a sound server survives every cut",
            "0 failures that no known defect of PostgreSQL explains",
            f"{failed - explained:,} of {cuts:,}; {explained:,} are explained"
            if explained
            else f"{failed:,} of {cuts:,} failed",
            bool(cuts) and failed == explained,
        ),
        Claim("the number of cuts", f"at least {CUTS:,}", f"{cuts:,}", cuts >= CUTS),
        Claim(
            "cuts during the recovery of another",
            f"at least {CUTS // CUTS_1_IN:,} of them",
            f"{again:,}",
            again >= CUTS // CUTS_1_IN,
        ),
        Claim(
            "cuts a minute",
            f"at least {CUTS_PER_MINUTE}, and all in at most {MINUTES_MAX} minutes",
            f"{cuts / minutes:.0f}, {minutes:.0f} minutes without the recordings" if minutes else "not measured",
            bool(minutes) and cuts / minutes >= CUTS_PER_MINUTE and minutes <= MINUTES_MAX,
        ),
        Claim(
            "planted bugs are caught",
            f"at least {MUTATION_SCORE:.0%} of {len(bugs)}",
            f"{len(caught)} of {len(tried)} that were tried",
            len(caught) >= MUTATION_SCORE * len(bugs),
            missed,
        ),
    ]


def render_crash(record: Record, judged: Sequence[Claim]) -> str:
    """The page on a sound server and on planted bugs."""
    made = _sound(record)
    cuts, failed = sum(item.cuts for item in made), sum(item.failed for item in made)
    return joined(
        "Power cuts, measured",
        "crash",
        record,
        judged,
        f"{durability.in_words(cuts, failed)}." if cuts else "",
        "## A server with everything on",
        "A row *in recovery* is of cuts that come while the server recovers from another cut, from mounting until it takes connections:"
        f" at most {CUTS_OF_ONE} of each recovery that is recorded.",
        md.table(
            ["recorded on", "cuts", "failed", "cuts a minute", "s of CPU a cut"],
            [[cell.name, *_row(item)] for cell, item in pairs(record, [*sound(), *recovering()]) if item],
        ),
        _failures(made),
        _not_measured(record, [*sound(), *recovering()]),
        _steps(made),
        "## Planted bugs",
        "Cuts until the first one failed, and until 10 of them did, or as many as were allowed. *alone* counts the cuts in which no other"
        " check found anything: without that check they would have passed.",
        md.table(
            ["bug", "what it is", "first caught by cut", "cuts", "failed", "by check", "alone"],
            [
                [mutant.name, mutant.why, *_bug(pair)]
                for mutant, (_, pair) in zip(mutants(), pairs(record, planted()), strict=True)
                if pair
            ],
        ),
        _not_measured(record, planted()),
        *_checks(record),
    )


def _failures(made: Sequence[Found]) -> str:
    """What the first failed cut of each row left, and the defects that explain failures."""
    failed = [f"- {item.name}: {item.first_failure}" for item in made if item.failed]
    if not failed:
        return ""
    explained = [
        f"*{element.name}* is {element.explained}." for element in known.DEFECTS if any(item.known for item in made)
    ]
    return "\n".join(["The first failure of each row that has one:", "", *failed, "", *explained]).rstrip()


def _not_measured(record: Record, cells: Sequence[Cell]) -> str:
    """The cells that a record lacks, and why where this machine cannot measure one."""
    lacking = [cell.name for cell, item in pairs(record, cells) if item is None]
    why = [f"{name} ({record.skipped[name]})" if name in record.skipped else name for name in lacking]
    return f"Not measured, {len(lacking)} of {len(cells)}: {'; '.join(why)}." if lacking else ""


def _caught(cell: Cell, result: Found, without: str = "") -> bool:
    """Whether a planted bug is caught by a check that must catch it, when the check ``without`` is switched off."""
    return bool(set(result.checks) & set(cell.caught_by) - {without})


def _checks(record: Record) -> list[str]:
    """What each check found in the cuts of planted bugs, and what the others would have missed without it."""
    tried = [(cell, item) for cell, item in pairs(record, planted()) if item is not None]
    caught = [(cell, item) for cell, item in tried if _caught(cell, item)]
    if not caught:
        return []
    rows = []
    for check in CHECKS:
        missed = [cell.name for cell, item in caught if not _caught(cell, item, check)]
        cuts, alone = (
            sum(count.get(check, 0) for count in counts)
            for counts in ([item.checks for _, item in tried], [item.alone for _, item in tried])
        )
        rows.append(
            [check, f"{cuts:,}", f"{alone:,}", f"{len(caught) - len(missed)} of {len(tried)}", "; ".join(missed)]
        )
    return [
        "## What each check is for",
        (
            "Over the cuts of all planted bugs: how many a check found something in, in how many it alone did, and how many bugs are caught when it is"
            " switched off. A state that cannot be mounted, or a server that does not start, is not asked anything more."
            " A check that is alone in no cut could be omitted."
        ),
        md.table(["check", "cuts", "alone", "caught without it", "bugs that only it catches"], rows),
    ]


def joined(title: str, bench: str, record: Record, judged: Sequence[Claim], *parts: str) -> str:
    """A page of a bench: what it was measured on, its claims, and its parts that are not empty."""
    measured = MEASURED.strip().format(
        cores=record.cores,
        kernel=record.kernel,
        postgres=record.postgres,
        seed=record.seed,
        build_hash=record.build_hash[:12],
    )
    partial = (
        ""
        if all(claim.holds for claim in judged)
        else "**This record is partial**, or a claim does not hold: the table says which."
    )
    head = f"# {title}\n\n<!-- Written by `make bench ONLY={bench}` from tools/crash. -->"
    return "\n\n".join(part for part in (head, partial, measured, claims_table(judged), *parts) if part) + "\n"


def _row(result: Found) -> list[str]:
    return [f"{result.cuts:,}", f"{result.failed:,}", f"{result.cuts_per_minute:.0f}", f"{result.cpu_s_per_cut:.2f}"]


def _bug(result: Found) -> list[str]:
    def counted(counts: dict[str, int]) -> str:
        return ", ".join(f"{check} {counts[check]}" for check in CHECKS if check in counts)

    first = "not caught" if result.until_failed is None else f"{result.until_failed:,}"
    return [first, f"{result.cuts:,}", f"{result.failed:,}", counted(result.checks), counted(result.alone)]


def _steps(made: Sequence[Found]) -> str:
    cuts = sum(item.cuts for item in made)
    if not cuts:
        return ""
    steps = {
        step: sum(item.ms_by_step.get(step, 0.0) * item.cuts for item in made) / cuts for step in made[0].ms_by_step
    }
    workers = " or ".join(str(number) for number in sorted({item.workers for item in made}))
    return f"Time of a cut by step, {workers} cuts at a time:\n\n" + md.table(
        ["step", "ms"], [[step, f"{ms:.0f}"] for step, ms in steps.items()]
    )
