"""Replays: which part of a capture is sent, where each session goes, and the process that sends it."""
