"""What PostgreSQL is made to do, and what came of it."""
