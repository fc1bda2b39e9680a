"""The relay as an instrument."""
