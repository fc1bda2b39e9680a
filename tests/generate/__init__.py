"""Data sets as files: what `pgdyno data generate` makes, and that PostgreSQL takes it."""
