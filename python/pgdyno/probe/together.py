"""Several prepared questions sent at once: who asks and who answers wake once for all of them, and not once for each.

A session that has slept finds little of its code and data in the processor's caches, and our thread neither: most of what a
small question costs is that.
"""

from __future__ import annotations

import select
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from psycopg.pq.abc import PGconn, PGresult


def ask_together(pgconn: PGconn, names: Sequence[bytes]) -> list[PGresult]:
    """The answers to prepared questions, which are one transaction. :class:`psycopg.Error` when one of them fails, or the connection."""
    pgconn.enter_pipeline_mode()
    for name in names:
        pgconn.send_query_prepared(name, ())
    pgconn.pipeline_sync()
    answers: list[PGresult] = []
    try:
        _collect(pgconn, answers)
        pgconn.exit_pipeline_mode()
    finally:  # why a connection was lost stands in the last answer
        for answer in answers:
            checked(answer)
    return answers


def _collect(pgconn: PGconn, answers: list[PGresult]) -> None:
    """Wait for all that comes before the answer to the message that ends the transaction."""
    from psycopg import OperationalError
    from psycopg.pq import ConnStatus, ExecStatus

    readable = select.poll()
    readable.register(pgconn.socket, select.POLLIN)
    while True:
        while pgconn.is_busy():
            readable.poll()  # libpq's own wait would keep other threads from running
            pgconn.consume_input()
        answer = pgconn.get_result()
        if answer is None:  # the end of what a question brought
            if pgconn.status == ConnStatus.BAD:
                raise OperationalError("the connection was lost")
            continue
        if answer.status == ExecStatus.PIPELINE_SYNC:
            return
        answers.append(answer)


def checked(answer: PGresult) -> PGresult:
    """An answer that is none is an error of psycopg's."""
    from psycopg.errors import error_from_result
    from psycopg.pq import ExecStatus

    if answer.status not in (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK):
        raise error_from_result(answer)
    return answer
