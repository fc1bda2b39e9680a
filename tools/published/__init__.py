"""Recorded results of the published documents' experiments, kept in ``catalog/published/recorded`` in a few kilobytes each."""
