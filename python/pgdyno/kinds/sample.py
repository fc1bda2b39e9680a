"""Kind `sample`: whole transactions of a capture, drawn with their values, for any number of clients and any rate.

It says how much more a volume would carry; what it carries today is a `replay`'s.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal

from pgdyno.workload.outcome import Outcome, Runner
from pgdyno.workload.server import Server

from ..results.record import Check
from ..results.work_record import SampleRecord
from ..workload.kind import Refusal
from .driven import DrivenKind
from .replay.kind import OfCapture

NOT_GIVEN_MOST = 0.01
"""A share of the transactions: those that find no row because their key was not given are cheaper than production's."""
READING_S = 600.0
"""Until a capture's index and transactions are read: one of a day has some ten gigabytes."""
_OF_LOOP = ("clients", "threads", "rate_per_s", "arrivals", "think_ms", "late_max_ms")


def keys_given(inputs: Mapping[str, int], sent: int) -> Check:
    """True if transactions had keys of this run, by what the engine counted of all that were sent."""
    not_given, again = inputs["keys_not_given"], inputs["drawn_again"]
    return Check(
        name="keys_given",
        ok=not_given <= NOT_GIVEN_MOST * max(1, sent),
        detail=f"{not_given:,} of {sent:,} transactions were sent with captured keys; {again:,} draws were repeated"
        " because none had been given yet",
    )


class SampleKind(OfCapture, DrivenKind):
    """`sample`: transactions that are drawn from a capture."""

    command: ClassVar[tuple[str, ...]] = ("capture", "sample")

    kind: Literal["sample"] = "sample"
    """Transactions of a capture, drawn by the seed."""

    @property
    def sessions(self) -> int:
        """Each client has one for each role in each database, when it first needs it."""
        return self.clients * max(1, len(self.selection.planned().places))

    def order(self, server: Server, dilation: int) -> dict[str, Any]:
        """Transactions to draw, their destinations, and the keys of the databases."""
        return self.selection.document() | {
            "endpoints": self.selection.endpoints(server),
            "keys": self.selection.keys_on(server, dilation),
            "reading_s": READING_S,
        }

    def require(self) -> None:
        """Check that the capture exists and has sessions of the selection."""
        self.selection.planned()

    def runner(self, shared: Any = None) -> Runner:
        """The driver's, with the engine's own program for captures."""
        from pgdyno.workload import native

        return partial(native.run, spec=self)

    def refusals(self) -> Iterator[Refusal]:
        """First about the capture."""
        yield from self._of_capture()
        for key, why in (
            ("protocol", "each statement is sent as it was"),
            ("tries_max", "what the application tried again is in the capture"),
        ):
            if key in self.model_fields_set:
                yield Refusal(key, f"{why}; omit the key")
        yield from DrivenKind.refusals(self)

    def proofs(
        self, server: Server, outcome: Outcome, baseline: Any = None, *, full: bool = False
    ) -> tuple[Check, ...]:
        """Transactions had keys that this run was given, not those that production was given while it was captured."""
        total = outcome.account_total
        return (keys_given(outcome.inputs, total.succeeded + total.rolled_back + total.failed),)

    def with_server_stats(self, server: Server, outcome: Outcome) -> Outcome:
        """With what its transactions were drawn from."""
        return replace(outcome, sample=self.drawn_from(outcome.inputs))

    def drawn_from(self, inputs: Mapping[str, int]) -> SampleRecord:
        """Transactions that the sample draws from, as the engine counted them."""
        return SampleRecord(transactions=inputs["read"], left_out=inputs["left_out"], reading=self.selection.reading)

    def record(self) -> dict[str, Any]:
        """As it stands in ``run.json``: no value of the capture."""
        loop = {key: getattr(self, key) for key in _OF_LOOP}
        first = {"kind": self.kind, "engine": self.driver, "closed": self.closed}
        last = {"seed": self.seed, "driver_cpus": self.driver_cpus}
        return first | self._record_of_capture() | loop | last
