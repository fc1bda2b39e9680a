"""pgdyno puts PostgreSQL on a dynamometer: what will this cloud volume do to this workload?

The flow is experiment -> world -> workload -> probe -> store -> analysis -> report; each stage is a package here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgdyno.loader import load

__version__ = "0.1.0"
"""The same number as in Cargo.toml (a test compares them)."""

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    """``pgdyno.load``, imported when it is used: nothing else should pay for it."""
    if name == "load":
        from pgdyno.loader import load

        return load
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
