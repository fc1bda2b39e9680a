"""``pgdyno load``: what happens around the bytes."""
