"""``pgdyno diagnose``: watch a server in use, and say which limit binds, whose requests fill it, and what to do."""
