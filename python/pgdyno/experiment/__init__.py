"""What is asked for: world, instance, server, workload, factors, seed. Typed, and without a side effect."""

from pgdyno.experiment.arm import Arm
from pgdyno.experiment.file import read_experiment
from pgdyno.experiment.model import Cell, Experiment

from .origin import Origin

__all__ = ["Arm", "Cell", "Experiment", "Origin", "read_experiment"]
