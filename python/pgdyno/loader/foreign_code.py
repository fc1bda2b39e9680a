"""Whether text of an index's definition could run code of a role that must not act for the table's owner.

CREATE INDEX runs the functions of an index's expressions as the owner of the table. So an index is dropped, and built again
from its fact, only where all that its expressions name belongs to the role that loads, to the table's owner or to a
superuser. The text is not parsed: whatever could be a name with a schema counts as one, also within a string. What has no
schema is the server's own, by the ``search_path`` of the loader's sessions.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pgdyno.loader.server import maybe

from ..base.session import Connection

_NAME = r'"(?:[^"]|"")+"|[^\W\d][\w$]*'
_QUALIFIED = re.compile(rf"(?=(?<![\w$])({_NAME})\s*\.\s*({_NAME}|[-+*/<>=~!@#%^&|`?]+))")
"""It looks ahead, so that of ``a.b.c`` both ``a.b`` and ``b.c`` are found."""
_NOT_UNDERSTOOD = re.compile(r"/\*|--|[uU]&")
"""Comments between the parts of a name, and names in another notation: the server writes neither outside of strings."""
_OWNED = """
SELECT pg_describe_object(o.class, o.oid, 0), r.rolname
FROM (SELECT 'pg_proc'::regclass AS class, oid, pronamespace AS space, proname AS name, proowner AS owner FROM pg_proc
      UNION ALL SELECT 'pg_type'::regclass, oid, typnamespace, typname, typowner FROM pg_type
      UNION ALL SELECT 'pg_operator'::regclass, oid, oprnamespace, oprname, oprowner FROM pg_operator) o
JOIN pg_namespace n ON n.oid = o.space JOIN pg_roles r ON r.oid = o.owner
WHERE n.nspname = %s AND o.name = %s AND NOT r.rolsuper AND r.rolname <> current_user
      AND r.oid IS DISTINCT FROM (SELECT relowner FROM pg_class WHERE oid = %s) LIMIT 1
"""


def found(connection: Connection, texts: Iterable[str], table_oid: int) -> str | None:
    """What must not be run, in words; None where there is nothing."""
    for text in texts:
        if _NOT_UNDERSTOOD.search(text):
            return f"the expression `{text}`, which cannot be checked"
        for schema, name in set(_names(text)):
            row = maybe(connection, _OWNED, (schema, name, table_oid))
            if row is not None:
                return f"the {row[0]}, which belongs to the role {row[1]}"
    return None


def _names(text: str) -> Iterator[tuple[str, str]]:
    for match in _QUALIFIED.finditer(text):
        yield _plain(match[1]), _plain(match[2])


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.lower()
