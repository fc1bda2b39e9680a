"""Captures: what is read of the logs of real servers."""
