"""The record of loads that several hosts drive: what the benches in tests/hosts measured, judged, and its page."""
