"""Tests of the world: volumes, instances, the journal and the clean-up."""
