"""Measured loads out of the files that people have: one module for each program that writes them."""
