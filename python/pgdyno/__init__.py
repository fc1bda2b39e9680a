"""pgdyno puts PostgreSQL on a dynamometer: what will this cloud volume do to this workload?

The flow is experiment -> world -> workload -> probe -> store -> analysis -> report; each stage is a package here.
"""

__version__ = "0.1.0"
"""The same number as in Cargo.toml (a test compares them)."""

__all__ = ["__version__"]
