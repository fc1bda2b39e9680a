"""What limits are called on a server that was watched."""

from __future__ import annotations

from ...analysis.binding.rules import Limit

WATCHED: dict[Limit, str] = {
    "client": "nothing binds: the clients ask for no more",
    "harness": "other processes of this host",
    "no_answer": "no answer of the server",
}
"""Those that have another name than in a run of pgdyno's own."""
