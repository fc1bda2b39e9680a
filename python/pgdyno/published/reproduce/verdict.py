"""What a ratio here says of the ratio in a document. Nothing here knows files, runs or words of a page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...analysis.statistics import Estimate, distinguishable

CLOSE_SHARE = 0.05
"""An interval that is this near to the document's ratio agrees with it even where it includes 1: a wider one would agree with anything."""

NO_CAUSE = "the cause is not known"
"""What stands in the place of a cause."""


class Word(StrEnum):
    """The verdict in a word or a few."""

    AGREES = "agrees"
    WITHIN = "agrees within what is unstated"
    DIFFERS = "differs"
    UNTOLD = "cannot be told here"


class Sign(StrEnum):
    """Whether the larger figure of the document is the larger one here."""

    RIGHT = "right"
    WRONG = "wrong"
    OPEN = "not distinguishable"
    NONE = "no difference there"
    """The document's own ratio is 1, as far as its figures say."""
    UNTOLD = "–"
    """There is no ratio here."""


@dataclass(frozen=True)
class PublishedRatio:
    """The ratio in the document."""

    ratio: float
    share: float = 0.0
    """By which share its "about" leaves the ratio open, either way."""

    @property
    def low(self) -> float:
        """The least that the document can mean."""
        return self.ratio * (1 - self.share)

    @property
    def high(self) -> float:
        """The most that it can mean."""
        return self.ratio * (1 + self.share)


@dataclass(frozen=True)
class JudgedVerdict:
    """A verdict with its reason."""

    word: Word
    because: str = ""
    """A clause; empty for what agrees."""

    def sentence(self, mark: str = "") -> str:
        """``differs: because …``, with ``mark`` behind the word."""
        joint = "" if not self.because else ": " if self.because == NO_CAUSE else ": because "
        return f"{self.word}{mark}{joint}{self.because}"


def sign_of(there: PublishedRatio, here: Estimate | None) -> Sign:
    """The direction of the difference, there and here."""
    if here is None:
        return Sign.UNTOLD
    if there.low <= 1 <= there.high:
        return Sign.NONE
    if not distinguishable(here):
        return Sign.OPEN
    return Sign.RIGHT if (there.ratio > 1) is (here.mean > 1) else Sign.WRONG


def order_of(signs: Sequence[Sign]) -> Sign:
    """The order of several figures, from the signs of its steps: wrong where one step is, right where all are."""
    for sign in (Sign.WRONG, Sign.UNTOLD, Sign.OPEN):
        if sign in signs:
            return sign
    return Sign.RIGHT


def judged(there: PublishedRatio, here: Estimate, varied: Sequence[Estimate], cause: str) -> JudgedVerdict:
    """The verdict on a ratio with its interval. ``varied`` are the same ratio with other choices of what is not stated.

    ``cause`` is why the two differ, where they do.
    """
    if here.low is None or here.high is None:
        return JudgedVerdict(Word.UNTOLD, "each arm ran once, and one run has no interval")
    inside = here.low <= there.high and there.low <= here.high
    close = here.low >= there.low * (1 - CLOSE_SHARE) and here.high <= there.high * (1 + CLOSE_SHARE)
    if inside and (distinguishable(here) or close):
        return JudgedVerdict(Word.AGREES)
    reach = reach_of(here, varied)
    if reach is not None and reach[0] <= there.high and there.low <= reach[1]:
        return JudgedVerdict(Word.WITHIN)
    if inside:
        return JudgedVerdict(Word.UNTOLD, "the interval has both no difference and the document's ratio in it")
    return JudgedVerdict(Word.DIFFERS, cause or NO_CAUSE)


def reach_of(here: Estimate, varied: Sequence[Estimate]) -> tuple[float, float] | None:
    """The sensitivity interval: the extremes of the ratio over what was varied; None where nothing was."""
    means = [here.mean, *(estimate.mean for estimate in varied)]
    return (min(means), max(means)) if varied else None
