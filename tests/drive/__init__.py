"""The driver, ``pgdyno-engine drive``."""
