"""Files behind ``https://`` (RFC 9110): read in ranges, under the condition that they are as they were found."""

from __future__ import annotations

import base64
import binascii
import contextlib
import functools
import hashlib
import ipaddress
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urldefrag, urlencode, urljoin, urlsplit, urlunsplit

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

from ...base.errors import HostError, InputError

if TYPE_CHECKING:
    from urllib3 import BaseHTTPResponse, PoolManager

REDIRECTS = 5
CONNECTIONS = 16
"""That are kept to one host."""
PARTIAL, PRECONDITION_FAILED, NOT_SATISFIABLE = 206, 412, 416
_SIGNED = ("x-amz-", "x-goog-", "x-ms-")
"""What the parameters of signed addresses begin with: Amazon's, Google's, Azure's."""
_SIGNATURE = {
    *("awsaccesskeyid", "signature", "expires", "key-pair-id", "policy", "googleaccessid", "token"),
    *("sig", "se", "sp", "spr", "sr", "ss", "srt", "st", "sv", "sip", "skoid", "sktid", "skt", "ske", "sks", "skv"),
}
"""Others: of S3's older signatures and CloudFront's, of Google's, and of Azure's shared access signatures."""
_TOTAL = re.compile(r"bytes (?:\d+-\d+|\*)/(\d+)")
_DIGEST = re.compile(r"sha-(256|512)=:([A-Za-z0-9+/]+=*):")
_SHA256 = re.compile(r"sha256=([0-9a-fA-F]{64})")


@dataclass(frozen=True)
class WebObject:
    """One file, as it was found."""

    address: str = field(repr=False)
    """With everything that is secret in it."""
    name: str
    facts: ObjectFacts

    def read(self, first: int, end: int) -> Iterator[bytes]:
        """Some of its bytes, if it is still the same."""
        etag = self.facts.etag
        # A weak one is never the same by this condition (RFC 9110, 13.1.1); whether it is, is seen in the answer.
        same = {} if etag is None or etag.startswith("W/") else {"If-Match": etag}
        with _said(self.name), _answer(self.address, {"Range": f"bytes={first}-{end - 1}", **same}) as answer:
            if answer.status in (PRECONDITION_FAILED, NOT_SATISFIABLE):
                raise changed(self.name)
            if not _is_success(answer):
                raise _refused(self.name, answer)
            self._require_same(answer)
            came = answer.headers.get("Content-Range")
            if answer.status != PARTIAL or came != f"bytes {first}-{end - 1}/{self.facts.bytes}":
                raise TransientError(f"the server answered with {came or 'the whole file'}")
            yield from answer.stream(PIECE_BYTES, decode_content=False)

    def _require_same(self, answer: BaseHTTPResponse) -> None:
        """:class:`~pgdyno.base.errors.ObjectChanged` for an answer of another file than was found."""
        now = _facts(answer, None)
        if now is None:
            return
        by = ("etag",) if self.facts.etag is not None and now.etag is not None else ("modified",)
        if now.bytes != self.facts.bytes or any(getattr(now, text) != getattr(self.facts, text) for text in by):
            raise changed(self.name)


def find(address: str, head_bytes: int) -> tuple[WebObject, bytes]:
    """A file and its beginning. :class:`InputError` for what cannot be read so; :class:`TransientError`."""
    name = shown(address)
    plain, fragment = urldefrag(address)
    expected = _expected(name, fragment)
    if "@" in urlsplit(plain).netloc:
        raise InputError(
            f"{name}: a password in an address is seen by all who list processes",
            remedy="take an address that is signed, or pipe: `curl --netrc … | pgdyno load - --format …`",
        )
    with _said(name), _answer(plain, {"Range": f"bytes=0-{head_bytes - 1}"}) as answer:
        if answer.status == NOT_SATISFIABLE and (answer.headers.get("Content-Range") or "").endswith("*/0"):
            return WebObject(plain, name, ObjectFacts(0, None)), b""
        if not _is_success(answer):
            raise _refused(name, answer)
        facts = _facts(answer, expected)
        if facts is None or (answer.status != PARTIAL and facts.bytes > head_bytes):
            what = "say how long the file is" if facts is None else "give parts of a file"
            raise InputError(
                f"{name}: the server does not {what}, so a broken load could not be resumed",
                remedy="pipe it, if it may begin again: `curl -sSf ADDRESS | pgdyno load - --format …`",
            )
        return WebObject(plain, name, facts), _head(answer, min(facts.bytes, head_bytes))


def _head(answer: BaseHTTPResponse, size: int) -> bytes:
    head = b""
    for piece in answer.stream(PIECE_BYTES, decode_content=False):
        head += piece
        if len(head) > size:
            break
    if len(head) != size:
        raise TransientError(f"{len(head):,} bytes of the beginning came, and {size:,} were asked for")
    return head


def shown(address: str) -> str:
    """An address as it may be written down: without user, password and signature; other parameters as eight digits."""
    parts = urlsplit(address)
    kept = [
        (key, value)
        for key, value in parse_qsl(parts.query, keep_blank_values=True)
        if not key.lower().startswith(_SIGNED) and key.lower() not in _SIGNATURE
    ]
    text = hashlib.sha256(urlencode(kept).encode()).hexdigest()[:8] if kept else ""
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, text, ""))


def _expected(name: str, fragment: str) -> Checksum | None:
    """The checksum that stands behind the address, as in ``…/title.tsv.gz#sha256=…``."""
    if not fragment:
        return None
    match = _SHA256.fullmatch(fragment)
    if match is None:
        raise InputError(
            f"{name}: the text after `#` is not a checksum",
            remedy="write it as #sha256= and 64 digits, or leave it",
        )
    return Checksum("SHA256", bytes.fromhex(match[1]))


def _facts(answer: BaseHTTPResponse, expected: Checksum | None) -> ObjectFacts | None:
    """What an answer says of the whole file; None when it does not say how long it is."""
    headers = answer.headers
    if answer.status == PARTIAL:
        total = _TOTAL.fullmatch(headers.get("Content-Range") or "")
        size = None if total is None else length(total[1])
    else:
        size = length(headers.get("Content-Length") or "")
    if size is None:
        return None
    checksum = expected or _stored(headers.get("Repr-Digest") or "")
    return ObjectFacts(size, headers.get("ETag"), None, headers.get("Last-Modified"), checksum)


def _stored(output: str) -> Checksum | None:
    """The first checksum of ``Repr-Digest`` that is one: what is not as long as it must be says nothing of the content."""
    for name, text in _DIGEST.findall(output):
        with contextlib.suppress(binascii.Error):
            value = base64.b64decode(text)
            if len(value) == int(name) // 8:
                return Checksum(f"SHA{name}", value)
    return None


@contextlib.contextmanager
def _answer(address: str, headers: Mapping[str, str]) -> Iterator[BaseHTTPResponse]:
    """The response to GET after redirects, which each request follows again, since signed addresses expire."""
    document = {"Accept-Encoding": "identity", "User-Agent": "pgdyno", **headers}
    name, at_home = shown(address), _is_loopback(urlsplit(address).hostname or "")
    for _ in range(REDIRECTS + 1):
        _require_safe(address, at_home=at_home)
        answer = _pool(_proxy(address)).request(
            "GET", address, headers=document, preload_content=False, decode_content=False, redirect=False, retries=False
        )
        with contextlib.closing(answer):
            place = answer.get_redirect_location()
            if not place:
                yield answer
                return
            address = urljoin(address, place)
    raise InputError(f"{name} leads from place to place", remedy="name the file's own address")


def _require_safe(address: str, *, at_home: bool) -> None:
    """``at_home``: it began on this machine; no server elsewhere may send us to one here."""
    parts = urlsplit(address)
    if parts.scheme == "https" or (at_home and parts.scheme == "http" and _is_loopback(parts.hostname or "")):
        return
    raise InputError(
        f"{shown(address)}: what does not come by https:// can be read and changed on its way",
        remedy="take the address with https://; http:// is for this machine alone",
    )


def _is_loopback(host: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def _proxy(address: str) -> str | None:
    """As ``https_proxy`` and ``no_proxy`` say."""
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(address)
    host = parts.hostname or ""
    if _is_loopback(host) or proxy_bypass(host):
        return None
    result = getproxies().get(parts.scheme)
    return result if result is None or "://" in result else f"http://{result}"


@functools.cache
def _pool(proxy: str | None) -> PoolManager:
    import urllib3

    timeout = urllib3.Timeout(connect=CONNECT_S, read=READ_S)
    if proxy is None:
        return urllib3.PoolManager(maxsize=CONNECTIONS, timeout=timeout)
    return urllib3.ProxyManager(proxy, maxsize=CONNECTIONS, timeout=timeout)


def _is_success(answer: BaseHTTPResponse) -> bool:
    return answer.status in (200, PARTIAL)


def _refused(name: str, answer: BaseHTTPResponse) -> Exception:
    """The error for an unsuccessful response."""
    status, text = answer.status, f"{answer.status} {answer.reason or ''}".strip()
    if status >= SERVER_ERROR or status == TOO_MANY_REQUESTS:
        return TransientError(f"the server answered {text}", wait_s(answer.headers.get("Retry-After")))
    if status in (404, 410):
        return InputError(f"{name} does not exist", remedy="name a file that is there")
    if status in (401, 403):
        return InputError(
            f"{name}: the server does not let you read it ({text})",
            remedy="take an address that is signed and still valid, or pipe: `curl … | pgdyno load - --format …`",
        )
    return InputError(f"{name}: the server refuses ({text})", remedy="look at the address in a browser")


@contextlib.contextmanager
def _said(name: str) -> Iterator[None]:
    """An exception of urllib3 as pgdyno's error: final, or :class:`TransientError`."""
    from urllib3 import exceptions

    try:
        yield
    except exceptions.LocationValueError as error:
        raise InputError(f"{name} is not a valid address: {error}", remedy="write it as https://host/path") from error
    except (exceptions.HTTPError, OSError) as error:
        if "CERTIFICATE_VERIFY_FAILED" in str(error):
            raise HostError(
                f"{name}: the certificate of the server is not trusted",
                remedy="let SSL_CERT_FILE name the authority's certificate, if you trust it",
            ) from error
        raise TransientError(" ".join(str(error).split())) from error
