"""PostgreSQL's life cycle: its programs, its settings, one cluster from initdb to shutdown."""
