"""Objects of S3, and of stores that speak its language, by boto3: its ways to credentials, regions and endpoints."""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from pgdyno.loader.remote.checksum import ALGORITHMS
from pgdyno.loader.remote.store import (
    CONNECT_S,
    PIECE_BYTES,
    READ_S,
    SERVER_ERROR,
    TOO_MANY_REQUESTS,
    Checksum,
    ObjectFacts,
    TransientError,
    changed,
    length,
    wait_s,
)

from ...base.errors import HostError, InputError, PgdynoError

REGION = "us-east-1"
"""Where nothing says one: a store of another kind has none, and S3 tells boto3 where a bucket really is."""
PARTS_MAX = 10_000
"""That an object of S3 has (its limits)."""
SHOWN = 40
"""Characters of what a store says that an error has."""
CONNECTIONS = 64
"""That are kept: more ranges than that are seldom under way."""
MAGIC = set("*?[")
"""What makes a key a pattern."""
_BUSY = {"SlowDown", "RequestTimeout", "InternalError", "ServiceUnavailable", "Throttling", "ThrottlingException"}
"""Codes that mean: not now."""
_CHANGED = {412, 416}
"""It is another object than was asked for, or a shorter one."""
_CREDENTIALS = (
    "give credentials in one of boto3's ways: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, an instance's role"
    " (permissions: s3:GetObject, s3:ListBucket); or --s3-anonymous for a public bucket"
)


@dataclass(frozen=True)
class S3Object:
    """One object, as it was found."""

    client: Any = field(repr=False)
    bucket: str
    key: str
    facts: ObjectFacts

    @property
    def name(self) -> str:
        """As it was named."""
        return f"s3://{self.bucket}/{self.key}"

    def read(self, first: int, end: int) -> Iterator[bytes]:
        """Some of its bytes, if it is still the same."""
        same = {} if self.facts.etag is None else {"IfMatch": self.facts.etag}
        with _said(self.name):
            answer = self.client.get_object(Bucket=self.bucket, Key=self.key, Range=f"bytes={first}-{end - 1}", **same)
            with contextlib.closing(answer["Body"]) as body:
                if answer.get("ETag") not in (None, self.facts.etag):
                    raise changed(self.name)
                if answer.get("ContentRange") != f"bytes {first}-{end - 1}/{self.facts.bytes}":
                    raise TransientError(f"the store answered with {answer.get('ContentRange') or 'the whole object'}")
                while piece := body.read(PIECE_BYTES):
                    yield piece


@dataclass
class S3:
    """How S3 is reached."""

    endpoint: str | None = None
    """Of another store; None: as boto3 finds it (``AWS_ENDPOINT_URL``), else Amazon's."""
    anonymous: bool = False
    """Sign nothing."""
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock, repr=False)

    @functools.cached_property
    def client(self) -> Any:
        """Made once; several threads may use it."""
        import boto3
        from botocore import UNSIGNED
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError

        settings: dict[str, Any] = {"signature_version": UNSIGNED} if self.anonymous else {}
        config = Config(
            connect_timeout=CONNECT_S,
            read_timeout=READ_S,
            retries={"total_max_attempts": 1},  # ranges are tried again here, from the byte where they broke
            max_pool_connections=CONNECTIONS,
            response_checksum_validation="when_required",  # a range has none; the whole is held to its own
            **settings,
        )
        try:
            session = boto3.session.Session()
            region = session.region_name or REGION
            return session.client("s3", region_name=region, endpoint_url=self.endpoint, config=config)
        except (BotoCoreError, ValueError) as error:
            raise InputError(
                f"S3 cannot be reached: {error}",
                remedy="look at --s3-endpoint (as http://127.0.0.1:9000), AWS_PROFILE and the files below ~/.aws",
            ) from None

    def find(self, bucket: str, key: str) -> S3Object:
        """One object. :class:`InputError` when there is none, or not for us."""
        name = f"s3://{bucket}/{key}"
        with self._lock:
            client = self.client
        with _said(name):
            head = client.head_object(Bucket=bucket, Key=key, ChecksumMode="ENABLED")
        modified, size = head.get("LastModified"), length(head.get("ContentLength"))
        if size is None:
            raise InputError(
                f"{name}: the store says {str(head.get('ContentLength'))[:SHOWN]} for its length",
                remedy="check that the endpoint speaks S3",
                code="load.object.length",
                data={"source": name},
            )
        facts = ObjectFacts(
            bytes=size,
            etag=head.get("ETag"),
            version=head.get("VersionId"),
            modified=None if modified is None else modified.isoformat(),
            checksum=_checksum(client, {"Bucket": bucket, "Key": key}, head),
        )
        return S3Object(client, bucket, key, facts)

    def keys(self, bucket: str, pattern: str) -> list[str]:
        """Keys of objects that a pattern names, in their order: ``*`` and ``?`` do not reach over a ``/``."""
        literal = next((place for place, letter in enumerate(pattern) if letter in MAGIC), len(pattern))
        name = f"s3://{bucket}/{pattern}"
        with self._lock:
            client = self.client
        with _said(name):
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=pattern[:literal])
            keys = [Content["Key"] for page in pages for Content in page.get("Contents", ())]
        if pattern in keys:
            return [pattern]  # a name with such letters in it
        return sorted(key for key in keys if not key.endswith("/") and _fits(key, pattern))


def _fits(key: str, pattern: str) -> bool:
    return PurePosixPath(f"/{key}").match(f"/{pattern}")


def _checksum(client: Any, where: Mapping[str, str], head: Mapping[str, Any]) -> Checksum | None:
    """What the store has; None where it has nothing that can be counted here."""
    results = next(((name, head[f"Checksum{name}"]) for name in ALGORITHMS if head.get(f"Checksum{name}")), None)
    if results is None:
        return None
    algorithm, (text, dash, _) = results[0], results[1].partition("-")
    try:
        value = base64.b64decode(text)
    except binascii.Error:
        return None
    # Who does not say which kind it is, and has an object that came in parts (its ETag then has a dash), may mean either.
    kind = head.get("ChecksumType") or ("COMPOSITE" if dash or "-" in head.get("ETag", "") else "FULL_OBJECT")
    if kind == "FULL_OBJECT":
        return Checksum(algorithm, value)
    parts = _parts(client, where)
    return Checksum(algorithm, value, parts) if parts and sum(parts) == head["ContentLength"] else None


def _parts(client: Any, where: Mapping[str, str]) -> tuple[int, ...]:
    """The lengths of an object's parts; empty where the store does not say."""
    sizes: list[int] = []
    after = 0
    with contextlib.suppress(PgdynoError, TransientError), _said(""):
        while True:
            object_attributes = client.get_object_attributes(
                **where, ObjectAttributes=["ObjectParts"], PartNumberMarker=after
            )
            parts = object_attributes.get("ObjectParts", {})
            sizes += [length(part.get("Size")) or 0 for part in parts.get("Parts", ())]
            if not parts.get("IsTruncated"):
                return tuple(sizes) if all(sizes) else ()
            before, after = after, length(parts.get("NextPartNumberMarker")) or 0
            if after <= before or len(sizes) > PARTS_MAX:
                return ()  # a store that always has more says nothing that can be used
    return ()


@contextlib.contextmanager
def _said(name: str) -> Iterator[None]:
    """An exception of boto3 as pgdyno's error: final, or :class:`TransientError`."""
    from botocore import exceptions
    from urllib3.exceptions import HTTPError

    try:
        yield
    except exceptions.ClientError as error:
        raise _refused(name, error.response) from error
    except (
        exceptions.NoCredentialsError,
        exceptions.PartialCredentialsError,
        exceptions.CredentialRetrievalError,
        exceptions.TokenRetrievalError,
        exceptions.UnauthorizedSSOTokenError,
    ) as error:
        raise InputError(f"{name}: {error}", remedy=_CREDENTIALS) from error
    except exceptions.ParamValidationError as error:
        raise InputError(
            f"{name} is not the address of an object: {error}", remedy="write it as s3://bucket/key"
        ) from error
    except (exceptions.BotoCoreError, HTTPError, OSError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise HostError(
                f"{name}: the certificate of the store is not trusted",
                remedy="let AWS_CA_BUNDLE name the authority's certificate, if you trust it",
            ) from error
        raise TransientError(" ".join(str(error).split())) from error


def _refused(name: str, response: Mapping[str, Any]) -> Exception:
    """What a store's answer means."""
    metadata = response.get("ResponseMetadata", {})
    status = int(metadata.get("HTTPStatusCode") or 0)
    code = str(response.get("Error", {}).get("Code", status))
    text = str(response.get("Error", {}).get("Message", "")).rstrip(".")
    if status >= SERVER_ERROR or status == TOO_MANY_REQUESTS or code in _BUSY:
        return TransientError(
            f"the store answered {code}: {text}", wait_s(metadata.get("HTTPHeaders", {}).get("retry-after"))
        )
    if status in _CHANGED:
        return changed(name)
    if code == "NoSuchBucket":
        return InputError(f"{name}: there is no such bucket", remedy="check its name, and --s3-endpoint")
    if status == 404:
        return InputError(f"{name} does not exist", remedy="name an object that is there, as `aws s3 ls` lists it")
    if code == "InvalidObjectState":
        return InputError(
            f"{name} is archived, and cannot be read before it is restored",
            remedy="restore it with `aws s3api restore-object`, and load it when that is done",
        )
    if status in (401, 403):
        return InputError(f"{name}: the store does not let you read it ({code}: {text})", remedy=_CREDENTIALS)
    return InputError(f"{name}: the store refuses ({code}: {text})", remedy="see what its documentation says of that")
