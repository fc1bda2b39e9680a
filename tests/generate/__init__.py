"""Data sets as files: what `pgdyno generate` makes, and that PostgreSQL takes it."""
