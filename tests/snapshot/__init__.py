"""PostgreSQL on volumes whose requests fail on purpose."""
