"""What came out of the steps in a machine, kept on disk after each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, Field

from tools.fidelity.claim import Claim
from tools.measured import Kept

if TYPE_CHECKING:
    from collections.abc import Sequence


class Result(BaseModel):
    """One step."""

    model_config = ConfigDict(frozen=True)

    key: str
    did: str
    expected: str
    found: str
    holds: bool
    seconds: float


class Record(Kept):
    """A machine with what was done in it."""

    release: str
    """Debian's name of it."""
    wheel: str
    """Name and digest of the file that was installed: with another, it is another record."""
    facts: dict[str, str] = Field(default_factory=dict)
    results: list[Result] = Field(default_factory=list)

    def resumes(self, other: Record) -> bool:
        """Whether the results of both may stand in one table: each step begins in a machine that is as new."""
        return (self.release, self.wheel) == (other.release, other.wheel)

    def forget_failed(self) -> None:
        """What did not hold is done again."""
        self.results = [result for result in self.results if result.holds]


def judge(record: Record, steps: Sequence[str]) -> list[Claim]:
    """Each step as a claim; one that was not made does not hold."""
    made = {result.key: result for result in record.results}
    return [
        Claim(key, made[key].expected, made[key].found, made[key].holds)
        if key in made
        else Claim(key, "is done", "the bench ended before", holds=False)
        for key in steps
    ]
