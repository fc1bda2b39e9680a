"""How throughput grows with clients: the universal scalability law (Gunther, 1993), fitted to an arm's runs.

::

    TPS(n) = rate * n / (1 + contention * (n - 1) + coherence * n * (n - 1))

``contention`` is the share of the work for which clients queue (Amdahl's serial part; a saturated volume is 1), ``coherence`` what each pair
of clients costs. With both at 0 twice the clients do twice the transactions; with a coherence above 0 there is a number of clients
beyond which more of them do less.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

LEVELS_MIN = 4
"""Three constants go through any three points; a fourth shows whether the law describes anything."""
DEVIATION_MAX = 0.15
"""Where runs lie further from the curve than this (root mean square, relative), the law is not what they follow: the constants
would be names for noise."""
_STARTS = ((0.01, 1e-6), (0.1, 1e-4), (0.5, 1e-3), (0.95, 1e-2))
"""(contention, coherence) to search from: from nearly linear to nearly saturated."""


@dataclass(frozen=True)
class Scaling:
    """A fitted law."""

    rate_tps: float
    """Transactions per second of one client by itself."""
    contention: float
    """0 to 1."""
    coherence: float
    deviation: float
    """How far runs lie from the curve: root mean square of the difference of logarithms."""
    clients: tuple[float, float]
    """The range that it was fitted to."""

    def tps(self, clients: float) -> float:
        """What the law predicts for this number of clients."""
        waiting = 1 + self.contention * (clients - 1) + self.coherence * clients * (clients - 1)
        return self.rate_tps * clients / waiting

    @property
    def follows(self) -> bool:
        """Whether runs lie on the curve closely enough to speak of its constants."""
        return self.deviation <= DEVIATION_MAX

    @property
    def peak_clients(self) -> float | None:
        """Clients beyond which more of them do less; None where the curve never falls."""
        if self.coherence <= 1e-12:
            return None
        return max(1.0, math.sqrt(max(0.0, 1 - self.contention) / self.coherence))


def fit(points: Sequence[tuple[float, float]]) -> Scaling | None:
    """The law through (clients, TPS), by least squares of the logarithms: each point counts by its relative error.

    None for fewer than four numbers of clients.
    """
    import numpy as np
    from scipy.optimize import least_squares

    known = [(clients, tps) for clients, tps in points if clients > 0 and tps > 0]
    if len({clients for clients, _ in known}) < LEVELS_MIN:
        return None
    n = np.array([clients for clients, _ in known])
    logs = np.log([tps for _, tps in known])

    def residuals(constants: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        rate, contention, coherence = constants
        residuals: np.ndarray[Any, Any] = (
            rate + np.log(n) - np.log(1 + contention * (n - 1) + coherence * n * (n - 1)) - logs
        )
        return residuals

    limits = ([-np.inf, 0.0, 0.0], [np.inf, 1.0, 1.0])
    tried = []
    for contention, coherence in _STARTS:
        # The rate that fits the first point, if these were the other two.
        rate = float(-residuals(np.array([0.0, contention, coherence]))[0])
        tried.append(least_squares(residuals, [rate, contention, coherence], bounds=limits, x_scale="jac"))
    best = min(tried, key=lambda item: float(item.cost))
    rate, contention, coherence = (float(value) for value in best.x)
    deviation = math.sqrt(2 * float(best.cost) / len(known))
    return Scaling(math.exp(rate), contention, coherence, deviation, (float(n.min()), float(n.max())))
