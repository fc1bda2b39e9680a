"""What must hold of a draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.binding.limits import LIMITS
from tools.diagnose.truth import consumer_of
from tools.fidelity.claim import Claim

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tools.diagnose.record import Answer

JUDGED_MIN = 200
RIGHT_MIN = 0.99
CONSUMER_MIN = 0.95
OF_A_LIMIT_MIN = 3
WHOLE = "all"


def judge(answers: Sequence[Answer]) -> list[Claim]:
    """Enough labelled scenarios of each limit, nearly all right, none wrong with confidence, consumers named."""
    whole = [one for one in answers if one.view == WHOLE]
    right = sum(one.right for one in whole)
    wrong = [one for one in answers if one.confidently_wrong]
    counted = {limit: sum(one.facts.limit == limit for one in whole) for limit in LIMITS}
    fewest = min(counted.values())
    named = [(one, truth) for one in whole if (truth := consumer_of(one.facts)) is not None]
    largest = sum(one.consumer == truth for one, truth in named)
    return [
        Claim("labelled scenarios", f"at least {JUDGED_MIN}", f"{len(whole)}", len(whole) >= JUDGED_MIN),
        Claim("scenarios of each limit", f"at least {OF_A_LIMIT_MIN}", f"{fewest}", fewest >= OF_A_LIMIT_MIN,
              tuple(f"{limit}: {count}" for limit, count in counted.items() if count < OF_A_LIMIT_MIN)),
        Claim("right, with all that can be seen", f"at least {RIGHT_MIN:.0%}", _part(right, len(whole)),
              bool(whole) and right >= RIGHT_MIN * len(whole), tuple(said(one) for one in whole if not one.right)),
        Claim("wrong with high confidence, in any view", "none", f"{len(wrong)}", not wrong, tuple(map(said, wrong))),
        Claim("the largest consumer, where a volume's limit binds", f"at least {CONSUMER_MIN:.0%}", _part(largest, len(named)),
              bool(named) and largest >= CONSUMER_MIN * len(named),
              tuple(f"{one.facts.key}: {one.consumer} instead of {truth}" for one, truth in named if one.consumer != truth)),
    ]  # fmt: skip


def said(one: Answer) -> str:
    """A wrong answer in a line."""
    return f"{one.facts.key} ({one.view}): {one.limit or 'unknown'} ({one.confidence}); {one.facts.volumes}; {one.facts.load}"


def _part(count: int, of: int) -> str:
    return f"{count} of {of} ({count / of:.1%})" if of else "none"
