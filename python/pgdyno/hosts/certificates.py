"""An authority of one's own and its certificates: a certificate of it is what takes part, and nothing else is.

Dask checks on both sides of every connection that the other's certificate is of the authority. It compares no names, so every
certificate may do what every other may.
"""

from __future__ import annotations

import datetime as dt
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..base.errors import InputError, OutputError
from . import dask

AUTHORITY = "authority"
SCHEDULER = "scheduler"
COORDINATOR = "coordinator"
"""The names of the certificates of ``pgdyno hosts scheduler``, and of what asks it: ``pgdyno run``."""
DAYS = 365
_EARLIER = dt.timedelta(minutes=5)
"""Clocks of hosts differ, and a certificate that is not valid yet is refused."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_OTHERS = 0o077


@dataclass(frozen=True)
class Identity:
    """Whose certificate this process shows, and which authority the others must have."""

    folder: Path
    name: str

    @property
    def authority(self) -> Path:
        """The authority's certificate."""
        return self.folder / f"{AUTHORITY}.crt"

    @property
    def certificate(self) -> Path:
        """Its own."""
        return self.folder / f"{self.name}.crt"

    @property
    def key(self) -> Path:
        """The private key of that."""
        return self.folder / f"{self.name}.key"

    def security(self) -> Any:
        """Dask's ``Security``: TLS always, and certificates on both sides. :class:`InputError` for files that are missing or open to others."""
        for path in (self.authority, self.certificate, self.key):
            if not os.access(path, os.R_OK):
                raise InputError(
                    f"{path} cannot be read",
                    remedy=f"make it with `pgdyno hosts keys --out DIR --name {self.name}`, and copy it there with {AUTHORITY}.crt",
                )
        if self.key.stat().st_mode & _OTHERS:
            raise InputError(f"{self.key} can be read by other users", remedy=f"run `chmod 600 {self.key}`")
        roles = ("client", "scheduler", "worker")
        return dask.distributed().Security(
            require_encryption=True,
            tls_ca_file=str(self.authority),
            **{f"tls_{role}_cert": str(self.certificate) for role in roles},
            **{f"tls_{role}_key": str(self.key) for role in roles},
        )


def make(folder: Path, names: Sequence[str], days: int = DAYS) -> list[Path]:
    """Make an authority in ``folder`` unless it has one, and a certificate with its private key for each name.

    Returns what was written. :class:`OutputError` where it cannot be, :class:`InputError` for a name that has a certificate, or cannot be one of a file.
    """
    dask.cryptography()
    for name in names:
        if not _NAME.fullmatch(name) or name == AUTHORITY:
            raise InputError(f"`{name}` cannot name a certificate", remedy="use letters, digits, dots and hyphens")
        if (folder / f"{name}.crt").exists():
            raise InputError(f"{folder} has a certificate for {name}", remedy="use another name, or another directory")
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        written = [] if (folder / f"{AUTHORITY}.key").exists() else _make_authority(folder, days)
        for name in names:
            written += _make_certificate(folder, name, days)
    except OSError as error:
        raise OutputError(
            f"{folder} cannot be written: {error.strerror}", remedy="name a directory that you may write to"
        ) from None
    return written


def make_server(folder: Path) -> list[Path]:
    """``server.crt`` and its key, for a PostgreSQL that lasts for a run. It is signed by itself: who knows the password checks it by SCRAM's
    channel binding.
    """
    from cryptography import x509

    key = _new_key()
    limits = x509.BasicConstraints(ca=False, path_length=None)
    return _write(folder, "server", key, _signed("pgdyno", key, None, key, DAYS, limits))


def _make_authority(folder: Path, days: int) -> list[Path]:
    from cryptography import x509

    key = _new_key()
    limits = x509.BasicConstraints(ca=True, path_length=0)
    certificate = _signed("pgdyno hosts", key, None, key, days, limits)
    return _write(folder, AUTHORITY, key, certificate)


def _make_certificate(folder: Path, name: str, days: int) -> list[Path]:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        issuer = x509.load_pem_x509_certificate((folder / f"{AUTHORITY}.crt").read_bytes())
        signer = load_pem_private_key((folder / f"{AUTHORITY}.key").read_bytes(), password=None)
    except (OSError, ValueError) as error:
        raise InputError(
            f"the authority in {folder} cannot be used: {error}",
            remedy="name another directory: a new authority is made",
        ) from None
    key = _new_key()
    limits = x509.BasicConstraints(ca=False, path_length=None)
    return _write(folder, name, key, _signed(name, key, issuer, signer, days, limits))


def _new_key() -> Any:
    from cryptography.hazmat.primitives.asymmetric import ec

    return ec.generate_private_key(ec.SECP256R1())


def _signed(name: str, key: Any, issuer: Any, signer: Any, days: int, limits: Any) -> Any:
    """A certificate of ``key`` for ``name``, by the authority ``issuer`` (None: by itself)."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = dt.datetime.now(dt.UTC) - _EARLIER
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if issuer is None else issuer.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + dt.timedelta(days=days))
        .add_extension(limits, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )


def _write(folder: Path, name: str, key: Any, certificate: Any) -> list[Path]:
    """The certificate last: who has one has its key."""
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    files = (
        (folder / f"{name}.key", private, 0o600),
        (folder / f"{name}.crt", certificate.public_bytes(Encoding.PEM), 0o644),
    )
    for path, content, mode in files:
        path.unlink(missing_ok=True)  # of a command that was killed between the two
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            file.write(content)
    return [path for path, _, _ in files]
