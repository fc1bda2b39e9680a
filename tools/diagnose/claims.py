"""What must hold of a draw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgdyno.analysis.binding.rules import LIMITS
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
    whole = [answer for answer in answers if answer.view == WHOLE]
    right = sum(answer.right for answer in whole)
    wrong = [answer for answer in answers if answer.confidently_wrong]
    counted = {limit: sum(answer.facts.limit == limit for answer in whole) for limit in LIMITS}
    fewest = min(counted.values())
    named = [(answer, truth) for answer in whole if (truth := consumer_of(answer.facts)) is not None]
    largest = sum(item.consumer == truth for item, truth in named)
    return [
        Claim("labelled scenarios", f"at least {JUDGED_MIN}", f"{len(whole)}", len(whole) >= JUDGED_MIN),
        Claim("scenarios of each limit", f"at least {OF_A_LIMIT_MIN}", f"{fewest}", fewest >= OF_A_LIMIT_MIN,
              tuple(f"{limit}: {count}" for limit, count in counted.items() if count < OF_A_LIMIT_MIN)),
        Claim("right, with all that can be seen", f"at least {RIGHT_MIN:.0%}", _part(right, len(whole)),
              bool(whole) and right >= RIGHT_MIN * len(whole), tuple(said(answer) for answer in whole if not answer.right)),
        Claim("wrong with high confidence, in any view", "none", f"{len(wrong)}", not wrong, tuple(map(said, wrong))),
        Claim("the largest consumer, where a volume's limit binds", f"at least {CONSUMER_MIN:.0%}", _part(largest, len(named)),
              bool(named) and largest >= CONSUMER_MIN * len(named),
              tuple(f"{item.facts.key}: {item.consumer} instead of {truth}" for item, truth in named if item.consumer != truth)),
    ]  # fmt: skip


def said(answer: Answer) -> str:
    """A wrong answer in a line."""
    return f"{answer.facts.key} ({answer.view}): {answer.limit or 'unknown'} ({answer.confidence}); {answer.facts.volumes}; {answer.facts.load}"


def _part(count: int, of: int) -> str:
    return f"{count} of {of} ({count / of:.1%})" if of else "none"
