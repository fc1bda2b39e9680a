"""``python -m tests.rude.sql DSN STATEMENTS``: the rows of the last statement, with ``|`` between their fields."""

from __future__ import annotations

import sys

import psycopg


def main(dsn: str, statements: str) -> None:
    """Run and print."""
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        cursor = connection.execute(statements)
        while cursor.nextset():
            pass
        for row in cursor.fetchall() if cursor.description is not None else ():
            print(*row, sep="|")


if __name__ == "__main__":
    main(*sys.argv[1:])
