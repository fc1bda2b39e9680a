"""What is asked for: arms, workload, instance, durations, seed. Typed, and without a side effect."""

from pgdyno.experiment.compare import Cell, CompareExperiment
from pgdyno.experiment.quantity import parse_bytes, parse_seconds

__all__ = ["Cell", "CompareExperiment", "parse_bytes", "parse_seconds"]
