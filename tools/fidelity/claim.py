"""A claim, and whether it holds."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A claim and whether it holds. ``found`` is the figure that is worst for it."""

    name: str
    bar: str
    found: str
    holds: bool
    faults: tuple[str, ...] = ()
    """What breaks it, one for each job."""

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does not hold"
        return "\n  ".join([f"{self.name} ({self.bar}): {self.found}: {verdict}", *self.faults])


def of_errors(name: str, allowed: float, errors: dict[str, float]) -> Claim:
    """A claim that no error, each under its name, is larger than what is allowed."""
    faults = tuple(f"{what}: {error:+.2%}" for what, error in errors.items() if abs(error) > allowed)
    what, worst = max(errors.items(), key=lambda item: abs(item[1]))
    return Claim(name, f"within {allowed:.1%}", f"at most {worst:+.2%} ({what})", not faults, faults)
