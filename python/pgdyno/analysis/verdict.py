"""Numbers in the words of a verdict. What could not be told apart is called so."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgdyno.analysis.compare import ArmSummary, Ratio


def figures(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, thousands separated: 3.10, 31.0, 3,104."""
    if value == 0:
        return "0"
    import math

    # Rounded first, because 9.999 has one digit before the point and 10.0 two.
    rounded = float(f"{value:.{digits - 1}e}") if abs(value) < 10 ** (digits - 1) else value
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:,.{decimals}f}"


def sentence(arms: Sequence[ArmSummary], ratios: Sequence[Ratio]) -> str:
    """The verdict of a comparison, one sentence for each arm after the first."""
    if not ratios:
        return _alone(arms[0])
    by_name = {arm.index: arm for arm in arms}
    return " ".join(_against(by_name[ratio.index], by_name[ratio.to_index], ratio) for ratio in ratios)


def _alone(arm: ArmSummary) -> str:
    return f"{arm.label} does {figures(arm.tps.mean)} transactions per second{_price(arm)}."


def _against(arm: ArmSummary, base: ArmSummary, ratio: Ratio) -> str:
    invalid = [side.label for side in (arm, base) if not side.valid]
    if invalid:
        names = " and ".join(invalid)
        return f"No verdict on {arm.label} against {base.label}: {names} {'are' if len(invalid) > 1 else 'is'} invalid."
    if ratio.estimate is None:
        return f"No verdict on {arm.label} against {base.label}: no block has a run of both that did any transaction."
    estimate = ratio.estimate
    times = figures(estimate.mean)
    if estimate.low is None or estimate.high is None:
        return (
            f"{arm.label} did {times} times the transactions of {base.label} in the only replicate: one replicate has no"
            " interval, so the two are not distinguishable."
        )
    interval = f"95 % interval {figures(estimate.low)} to {figures(estimate.high)}, {estimate.n} replicates"
    money = _prices(arm, base)
    if not ratio.distinguishable:
        return (
            f"{arm.label} and {base.label} are not distinguishable: {times} times the transactions ({interval}){money}."
        )
    return f"{arm.label} does {times} times the transactions of {base.label} ({interval}){money}."


def dollars(amount: float) -> str:
    """US dollars: with cents only below a hundred and only where there are any."""
    return f"${amount:,.0f}" if amount >= 100 or amount == round(amount) else f"${amount:,.2f}"


def _price(arm: ArmSummary) -> str:
    return "" if arm.usd_per_month is None else f" at {dollars(arm.usd_per_month)} a month"


def _prices(arm: ArmSummary, base: ArmSummary) -> str:
    if arm.usd_per_month is None or base.usd_per_month is None:
        return ""
    return f" at {dollars(arm.usd_per_month)} against {dollars(base.usd_per_month)} a month"
