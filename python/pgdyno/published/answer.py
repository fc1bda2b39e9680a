"""How a published comparison is answered here: which experiment file, which two arms, which metric; or why it is not.

An answer names arms by the levels of their factors, as the experiment file writes them. A factor that is not named has its first level.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pgdyno.published.part import FilePart, Text

Levels = dict[Text, str]


class Arms(FilePart):
    """Two arms of one experiment."""

    experiment: Text
    """The file in ``experiments/``, without its ending."""
    high: Levels
    """Levels of the arm that stands for the document's larger figure."""
    low: Levels
    full_only: bool = False
    """Whether ``--quick`` does without it, because of the time that its arms take."""


class AnswerVariant(Arms):
    """The same ratio with another choice of what the document does not state."""

    what: Text
    """Which of the things that are not stated."""
    choice: Text
    """What it is in these arms."""


class RunAnswer(Arms):
    """Recorded runs that answer a comparison."""

    metric: Text
    """As tables, CSV and JSON name it: ``tps``, ``write_ms_mean``."""
    differently: str = ""
    """What is measured in another way than there; empty where nothing is."""
    cause: str = ""
    """Why the ratio differs where it does, as far as it was measured; empty where that is not known."""
    varied: tuple[AnswerVariant, ...] = ()


class VolumePair(FilePart):
    """Two volumes of the catalogue that answer a comparison without a run."""

    metric: Literal["usd_per_month", "failures_per_year_percent"]
    high: Text
    """The specification of the volume or array that stands for the document's larger figure."""
    low: Text
    cause: str = ""


class RequiredRun(FilePart):
    """One of the experiment files that a document is reproduced with."""

    experiment: Text
    full_only: bool = False
    """Whether ``--quick`` omits it, because of the time that it takes."""
    replicates: Annotated[int, Field(ge=1)] | None = None
    """Instead of the file's."""
    by_vcpus: bool = False
    """Whether vCPUs are compared, so that an arm with more of them than this machine's cores can stand for is not run."""


class Order(FilePart):
    """Figures that the document puts in an order: each comparison is a step down."""

    name: Text
    steps: Annotated[list[Text], Field(min_length=2)]
    """Names of comparisons."""
