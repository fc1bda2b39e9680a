"""Loading by the engine, ``pgdyno-engine fill``: tables equal to those of the originals, and nothing half made."""
