"""PostgreSQL on volumes of which snapshots are taken."""
