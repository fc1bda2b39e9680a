"""Texts of statements without their literals, which may be secrets."""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
      (?P<comment>  /\*.*?(?:\*/|\Z) | --[^\n]* )
    | (?P<name>     "(?:[^"]|"")*(?:"|\Z) )
    | (?P<quoted>   \$(?P<tag>[^\W\d]\w*)?\$ .*? (?:\$(?(tag)(?P=tag))\$|\Z) )
    | (?P<string>   \b[eE]'(?:\\.|''|[^'\\])*(?:'|\\?\Z) | '(?:''|[^'])*(?:'|\Z) )
    | (?P<word>     [^\W\d][\w$]* | \$\d+ )
    | (?P<number>   \.?\d(?:[eE][+-]\d|[\w.])* )
    """,
    re.DOTALL | re.VERBOSE,
)


_NESTED = re.compile(r"/\*(?:(?!\*/).)*?/\*", re.DOTALL)


def without_literals(text: str) -> str:
    """A statement as pg_stat_statements normalises it, also where the server did not: of utility commands before 16, and ever of what
    is quoted in them. Strings, also ones that are cut off, and numbers are ``?``; comments go. A text with a backslash,
    which means one thing or another by a setting, or with a comment in a comment is reduced to its first word.
    """
    if "\\" in text or _NESTED.search(text):
        words = text.split(maxsplit=1)
        return f"{words[0]} …" if words else ""
    return _TOKEN.sub(
        lambda match: match[0] if match["name"] or match["word"] else " " if match["comment"] else "?", text
    )
