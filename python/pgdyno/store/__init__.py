"""Run directories: written once, read by everything that comes after the run."""
