"""A database of the user's: recognised, compared, restored, kept, driven."""
