"""`make test` and `make bench`: what runs beside what, and what failed, said once more at the end."""
