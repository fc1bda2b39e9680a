"""pgdyno puts PostgreSQL on a dynamometer: what will this cloud volume do to this workload?

The flow is experiment -> world -> workload -> probe -> store -> analysis -> report; each stage is a package here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgdyno.loader import load

    from .analysis.validity import query

__version__ = "0.1.0"
"""The same number as in Cargo.toml (a test compares them)."""

__all__ = ["__version__", "load", "query"]


def __getattr__(name: str) -> Any:
    """``pgdyno.load`` and ``pgdyno.query``, imported when they are used: nothing else should pay for them."""
    if name == "load":
        from pgdyno.loader import load

        return load
    if name == "query":
        from .analysis.validity import query

        return query
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
