"""Which limit binds."""
