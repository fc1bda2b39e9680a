"""Whether data survives: power cuts and what is left after them, and how long snapshots are kept."""
