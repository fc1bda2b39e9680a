"""Tests of loads that several hosts drive: several "hosts" are processes of this machine, each with an address of its own."""
