"""Which objects a word of the command line names, and their beginnings."""

from __future__ import annotations

import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

from pgdyno.loader.remote import s3, web
from pgdyno.loader.remote.ranges import PATIENCE_AT_FIRST, again, fetch
from pgdyno.loader.remote.store import Object

from ...base.errors import InputError, ObjectChanged, ObjectDamaged

FINGERPRINT_BYTES = 64 << 10
"""Bytes of the beginning that are compared, too: some servers say little about an object."""
AT_A_TIME = 16
"""Objects that are looked at: each takes a few answers, and thousands one after another took minutes."""
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_ELSEWHERE = {"gs": "gsutil cat {}"}
"""What prints the content of an address that is not read here."""


@dataclass(eq=False)
class Remote:
    """An object that is to be loaded."""

    object: Object
    head: bytes
    """Its first bytes, as they are stored."""
    file_name: str
    """What a file of it would be called."""
    failure: ObjectChanged | ObjectDamaged | None = None
    """Why what came of it must not be gone on with."""

    @property
    def name(self) -> str:
        """As in messages and in the plan."""
        return self.object.name

    @property
    def bytes(self) -> int:
        """Its length."""
        return self.object.facts.bytes

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What says that it is the same object as before."""
        facts = self.object.facts
        return {
            "size": facts.bytes,
            "etag": facts.etag,
            "version": facts.version,
            "modified": facts.modified,
            "sha256": hashlib.sha256(self.head[:FINGERPRINT_BYTES]).hexdigest(),
        }


def is_address(word: str) -> bool:
    """Whether a word names something elsewhere."""
    return _ADDRESS.match(word) is not None


def find(word: str, where: s3.S3, head_bytes: int) -> list[Remote]:
    """The objects that an address names, with their beginnings; a pattern's in the order of their names.

    :class:`InputError` for what is not there or cannot be read; :class:`~pgdyno.base.errors.HostError` for a store that does not
    answer.
    """
    match = _ADDRESS.match(word)
    scheme = match[1].lower() if match else ""
    if scheme == "s3":
        return _in_s3(word, where, head_bytes)
    if scheme in ("https", "http"):
        return [_behind(word, head_bytes)]
    how = _ELSEWHERE.get(scheme, "curl -sSf {}").format(word)
    raise InputError(
        f"{word}: addresses begin with s3:// or https://",
        remedy=f"`{how} | pgdyno load - --format …` reads it as it comes",
    )


def _in_s3(word: str, where: s3.S3, head_bytes: int) -> list[Remote]:
    bucket, _, key = word.split("://", 1)[1].partition("/")
    if not bucket or not key or key.endswith("/"):
        what = "a folder" if key else "a bucket"
        raise InputError(f"{word} is {what}", remedy=f"name its objects, for example '{word.rstrip('/')}/*.csv'")
    if not set(key) & s3.MAGIC:
        return [_looked_at(where, bucket, key, head_bytes)]
    keys = again(word, lambda: where.keys(bucket, key))
    if not keys:
        raise InputError(f"no object matches {word}", remedy="check the pattern; a shell leaves it as it is in quotes")
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="pgdyno-find") as threads:
        return list(threads.map(lambda key: _looked_at(where, bucket, key, head_bytes), keys))


def _looked_at(where: s3.S3, bucket: str, key: str, head_bytes: int) -> Remote:
    result = again(f"s3://{bucket}/{key}", lambda: where.find(bucket, key))
    head_bytes = min(result.facts.bytes, head_bytes)
    head = bytes(fetch(result, 0, head_bytes, PATIENCE_AT_FIRST)) if head_bytes else b""
    return Remote(result, head, result.name)


def _behind(word: str, head_bytes: int) -> Remote:
    try:
        urlsplit(word).port  # noqa: B018 (looking at it is what finds a port that is none)
    except ValueError as error:
        raise InputError(f"{word} is not a valid address: {error}", remedy="write it as https://host/path") from None
    result, head = again(web.shown(word), lambda: web.find(word, head_bytes))
    return Remote(result, head, unquote(urlsplit(word).path))
