"""``docs/picture/demo.svg``: the README's picture, drawn from the report of a demonstration. One file serves light and dark.

::

    pgdyno report RESULTS --format json | python -m tools.reference.picture
"""

from __future__ import annotations

import json
import re
import sys
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from tools.reference.colours import schemes

FILE = Path(__file__).resolve().parents[2] / "docs" / "picture" / "demo.svg"
WIDTH_PX, ROW_PX, TOP_PX = 800, 64, 66
COLOURS = ("panel", "ink", "quiet", "line", "arm0", "arm1", "arm2", "arm3", "arm4", "arm5")
STYLE = """
text { font: 15px system-ui, -apple-system, "Segoe UI", sans-serif; fill: var(--ink); }
.head { font-size: 13px; fill: var(--quiet); }
.name { font-weight: 600; }
.quiet { fill: var(--quiet); font-size: 13px; }
"""


@dataclass(frozen=True)
class Panel:
    """One figure of every arm, as bars from zero."""

    title: str
    left_px: int
    width_px: int
    figures: list[tuple[float, float, float]]
    """Mean and the ends of its 95 % interval."""

    def row(self, place: int, y_px: float) -> str:
        """The bar of an arm with its interval and its figure."""
        mean, low, high = self.figures[place]
        room_px = self.width_px - 66
        most = max(figure[2] for figure in self.figures)

        def at(value: float) -> float:
            return round(self.left_px + room_px * max(0.0, value) / most, 1)

        bar = f'<rect x="{self.left_px}" y="{y_px - 11}" width="{at(mean) - self.left_px:.1f}" height="22" rx="3" fill="var(--arm{place % 6})" fill-opacity="0.75"/>'
        interval = f'<path d="M{at(low)} {y_px}H{at(high)}M{at(low)} {y_px - 5}v10M{at(high)} {y_px - 5}v10" stroke="var(--ink)" stroke-width="1.5"/>'
        return f'{bar}{interval}<text x="{at(high) + 8}" y="{y_px + 4}">{_number(mean)}</text>'


def picture(report: dict[str, Any]) -> str:
    """The picture as SVG."""
    arms = report["arms"]
    panels = (
        Panel("transactions per second", 305, 245, [_ends(arm["headline"]) for arm in arms]),
        Panel("99th percentile of latency, ms", 574, 215, [_ends(arm["latency_ms_of_runs"]["p99"]) for arm in arms]),
    )  # fmt: skip
    height_px = TOP_PX + ROW_PX * len(arms)
    parts = [f'<text class="head" x="{panel.left_px}" y="28">{panel.title}</text>' for panel in panels]
    for place, arm in enumerate(arms):
        y_px = TOP_PX + ROW_PX * place + 4
        parts.append(f'<text class="name" x="20" y="{y_px - 3}">{escape(_name(arm))}</text>')
        parts.append(f'<text class="quiet" x="20" y="{y_px + 17}">{escape(_below(arm))}</text>')
        parts.extend(panel.row(place, y_px) for panel in panels)
    title = escape(" ".join(report["verdict"].split()))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH_PX} {height_px}" width="{WIDTH_PX}" height="{height_px}"'
        f' role="img" aria-label="{title}">\n<style>\n{schemes(COLOURS)}{STYLE}</style>\n'
        f'<rect x="0.5" y="0.5" width="{WIDTH_PX - 1}" height="{height_px - 1}" rx="8" fill="var(--panel)" stroke="var(--line)"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _name(arm: dict[str, Any]) -> str:
    """The volume without its size, which all have in common."""
    return re.sub(r"(:)size=\w+,|:size=\w+$", r"\1", arm["volume"])


def _below(arm: dict[str, Any]) -> str:
    """What an arm costs, and what bound it."""
    price = "" if arm["usd_per_month"] is None else f"${arm['usd_per_month']:,.0f} a month"
    binding = arm["binding"]
    share = 0.0 if binding is None else binding["shares"].get(binding["limit"], 0.0)
    limit = "" if binding is None else f"{binding['title']} binds {share * 100:.0f} %"
    return " · ".join(part for part in (price, limit) if part)


def _ends(estimate: dict[str, Any]) -> tuple[float, float, float]:
    mean = estimate["mean"]
    low, high = (mean if estimate[end] is None else estimate[end] for end in ("low", "high"))
    return mean, low, high


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


if __name__ == "__main__":
    FILE.write_text(picture(json.load(sys.stdin)), encoding="utf-8")
