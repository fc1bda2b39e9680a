"""Watches servers that pgdyno did not make, under known loads, and writes what it said into the guide, as it came."""
