"""Tests of the wheel: packed around the engine that is there, examined, and installed in each way."""
