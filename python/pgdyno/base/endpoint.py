"""Where a server is and how to log in, as libpq resolved it: the complete order that the engine's sessions get.

libpq reads connection string, environment, service and password file, and picks one of several hosts, once: in our own session. The engine looks nothing up. What it cannot do as libpq does is refused by its keyword, before anything is changed.
Keywords and defaults: PostgreSQL's documentation, "Database Connection Control Functions" (version 18).
"""

from __future__ import annotations

import os
import pwd
import re
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import engine
from .errors import InputError
from .session import Connection

if TYPE_CHECKING:
    pass


CONNECT_TIMEOUT_S = 10
"""A server that is not reached within this time is not one to measure. libpq would wait as long as the kernel does."""
KEEPALIVE = {"keepalives_idle": 60, "keepalives_interval": 15, "keepalives_count": 8, "tcp_user_timeout": 300_000}
"""When to give up on a server that has vanished, in libpq's words (s, s, probes, ms), unless they are given: without them a
session waits for two hours, and for 15 minutes where it has sent something."""
_STARTUP = {"PGDATESTYLE": "datestyle", "PGTZ": "timezone", "PGGEQO": "geqo"}
"""Variables that libpq sends as settings of the session."""
_WAYS = ("none", "password", "md5", "scram-sha-256")
"""Ways of authentication that the engine knows, by libpq's names."""
_NEVER = {
    "replication": "a replication connection cannot load rows",
    "scram_client_key": "the engine logs in by password",
    "scram_server_key": "the engine logs in by password",
    "sslkeylogfile": "the engine writes no keys of its sessions",
}
"""Keywords that the engine does not support, and why."""
_KNOWN = frozenset(
    re.findall(
        r"\w+",
        """
        service servicefile user password passfile channel_binding connect_timeout dbname host hostaddr port client_encoding options
        application_name fallback_application_name keepalives keepalives_idle keepalives_interval keepalives_count tcp_user_timeout
        sslmode sslnegotiation sslcompression sslcert sslkey sslcertmode sslpassword sslrootcert sslcrl sslcrldir sslsni requirepeer
        require_auth min_protocol_version max_protocol_version ssl_min_protocol_version ssl_max_protocol_version gssencmode
        krbsrvname gsslib gssdelegation replication target_session_attrs load_balance_hosts scram_client_key scram_server_key
        oauth_issuer oauth_client_id oauth_client_secret oauth_scope sslkeylogfile
        """,
    )
)
"""Keywords of libpq 18. A later libpq's others may ask for a protection that the engine does not give."""
_SECRET = frozenset({"password", "sslpassword", "oauth_client_secret"})
"""Keywords of a connection string that may only be in the user's own files."""
_UTF8 = ("utf8", "unicode", "auto")
_VERSIONS = ("TLSv1.2", "TLSv1.3")
"""Versions of TLS that the engine supports."""
_GSS_ENCRYPTED = "SELECT encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_catalog.pg_backend_pid()"


@dataclass(frozen=True)
class Endpoint:
    """A server as the engine's sessions reach it. Make one with :func:`of_session` or :func:`local`."""

    document: Mapping[str, Any] = field(repr=False)
    """The engine's input, except for the application's name. It may hold a password."""
    application_name: str | None = None
    """As the user gave it."""
    client_encoding: str | None = None
    """As given by the user. The engine's sessions use UTF-8."""
    another: Callable[[str, str], Endpoint] | None = field(default=None, repr=False, compare=False)
    """How another role reaches another database there; None where all do by the same way."""

    def of(self, user: str, dbname: str) -> Endpoint:
        """The same server, for a role and a database of it."""
        if self.another is not None:
            return self.another(user, dbname)
        return replace(self, document={**self.document, "user": user, "dbname": dbname})

    @property
    def encrypted(self) -> bool:
        """Whether sessions use TLS."""
        return self.document.get("tls") is not None

    def order(self, application_name: str) -> dict[str, Any]:
        """The engine's ``server``."""
        return {**self.document, "application_name": application_name}

    def named(self, otherwise: str) -> dict[str, Any]:
        """The same, under the name that the user gave to the application."""
        return self.order(self.application_name or otherwise)

    def check(self) -> dict[str, Any]:
        """Open a session of the engine and close it. :class:`InputError` says why it cannot be opened."""
        return engine.run_json(["connect"], {"server": self.named("pgdyno")})

    def require_utf8(self) -> None:
        """Refuse another encoding of the client's than that of scripts. :class:`InputError`."""
        if self.client_encoding is not None and not _is_utf8(self.client_encoding):
            raise InputError(
                f"client_encoding is {self.client_encoding}, and scripts and their results are UTF-8",
                remedy="omit client_encoding, and unset PGCLIENTENCODING",
            )


def local(dsn: str, password: str | None = None) -> Endpoint:
    """A server of our own, whose connection string says everything: its socket, or a port of this machine, with TLS where that is required."""
    from psycopg.conninfo import conninfo_to_dict

    parts = {keyword: str(value) for keyword, value in conninfo_to_dict(dsn).items() if value is not None}
    where = ServerAddress(parts["host"], int(parts["port"]))
    return described(parts, where, password, encrypted=parts.get("sslmode") == "require")


def of_session(connection: Connection, dsn: str) -> Endpoint:
    """What libpq made of ``dsn`` for a session that is open.

    :class:`~pgdyno.base.errors.InputError` for a keyword or a variable that means something which the engine cannot do.
    """
    pgconn = connection.pgconn
    document = effective(dsn)
    for keyword, why in _NEVER.items():
        if document.get(keyword):
            raise _refused(keyword, why)
    for keyword in _unknown(document):
        raise _refused(keyword, "pgdyno does not know what it asks for")
    if document.get("min_protocol_version", "3.0") not in ("3.0", ""):
        raise _refused("min_protocol_version", "the engine supports version 3.0 of PostgreSQL's protocol")
    _require_no_gssapi(connection, document)
    host, number = pgconn.host.decode(), pgconn.hostaddr.decode()
    # A name that was given with its address is not looked up.
    look_up = host != number and not document.get("hostaddr")
    return described(
        document | {"user": pgconn.user.decode(), "dbname": pgconn.db.decode()} | _from_environment(),
        ServerAddress(host, int(pgconn.port.decode()), number, look_up=look_up),
        pgconn.password.decode() or None,
        encrypted=pgconn.ssl_in_use,
    )


def pinned(dsn: str, connection: Connection) -> str:
    """``dsn`` for further sessions like this one: to the host that libpq chose among several, and encrypted if this one is."""
    from psycopg.conninfo import make_conninfo

    document, pgconn = effective(dsn, keep_hosts=True), connection.pgconn
    more: dict[str, Any] = {}
    if any("," in document.get(keyword, "") for keyword in ("host", "hostaddr", "port")) or (
        document.get("load_balance_hosts") == "random" or document.get("service")
    ):
        more |= {"host": pgconn.host.decode(), "hostaddr": pgconn.hostaddr.decode(), "port": pgconn.port.decode()}
    if pgconn.ssl_in_use and document.get("sslmode") in ("allow", "prefer"):
        more["sslmode"] = "require"
    return make_conninfo(dsn, **more) if more else dsn


def effective(dsn: str, *, keep_hosts: bool = False) -> dict[str, str]:
    """What libpq makes of a connection string: with environment, service file and defaults. Nothing is connected to.

    Hosts and ports are left out unless they are to be kept.
    """
    from psycopg import pq
    from psycopg.conninfo import make_conninfo

    # An attempt that fails at once, at a directory without sockets, tells what a real one would take.
    nowhere = {"host": "/dev/null/pgdyno", "hostaddr": "", "port": "", "load_balance_hosts": "disable"}
    pgconn = pq.PGconn.connect_start(make_conninfo(dsn, **nowhere).encode())
    document = {item.keyword.decode(): item.val.decode() for item in pgconn.info if item.val}
    pgconn.finish()
    for keyword in nowhere:
        document.pop(keyword, None)
    return document | _hosts(dsn) if keep_hosts else document


def _hosts(dsn: str) -> dict[str, str]:
    """Hosts and ports of a string, else of the environment and its service."""
    from psycopg import pq

    given = {item.keyword.decode(): item.val.decode() for item in pq.Conninfo.parse(dsn.encode()) if item.val}
    usual = {
        get_default.keyword.decode(): get_default.val.decode()
        for get_default in pq.Conninfo.get_defaults()
        if get_default.val
    }
    wanted = ("host", "hostaddr", "port", "load_balance_hosts")
    return {keyword: value for keyword, value in (usual | given).items() if keyword in wanted}


@dataclass(frozen=True)
class ServerAddress:
    """Where a server was reached."""

    host: str
    """A name, an address, the directory of a socket, or ``@`` and an abstract one."""
    port: int
    number: str = ""
    """Its IP address; empty for a socket, or if it is still to be looked up."""
    look_up: bool = False
    """Whether the name may be looked up again when nothing answers there."""


def described(
    result: Mapping[str, str], address: ServerAddress, password: str | None = None, *, encrypted: bool = False
) -> Endpoint:
    """The order for a server at ``address``; ``asked`` has every other keyword that libpq found, and settings to begin with.

    ``encrypted`` says whether libpq used TLS. :class:`~pgdyno.base.errors.InputError` for what the engine cannot do.
    """
    is_local = address.host.startswith(("/", "@"))
    startup = {name: result[name] for name in ("options", *_STARTUP.values()) if result.get(name)}
    document = {
        "host": address.host,
        "port": address.port,
        "address": None if is_local else address.number or None,
        "look_up": address.look_up and not is_local,
        "user": result["user"],
        "dbname": result["dbname"],
        "password": password,
        "startup": startup,
        "connect_timeout_s": max(0, int(result.get("connect_timeout") or CONNECT_TIMEOUT_S)),
        "keepalive": {
            "enabled": result.get("keepalives", "1") != "0",
            **{
                keyword.removeprefix("keepalives_").removeprefix("tcp_") + unit: int(result.get(keyword) or usual)
                for (keyword, usual), unit in zip(KEEPALIVE.items(), ("_s", "_s", "", "_ms"), strict=True)
            },
        },
        "require_auth": _ways(result.get("require_auth", "")),
        "channel_binding": result.get("channel_binding", "prefer"),
        "peer_uid": _uid(result["requirepeer"]) if is_local and result.get("requirepeer") else None,
        "tls": _tls(result) if encrypted else None,
    }
    name = result.get("application_name") or result.get("fallback_application_name")
    return Endpoint(document, name, result.get("client_encoding"))


def _unknown(result: Mapping[str, str]) -> list[str]:
    """Keywords that are not :data:`_KNOWN`, and are not as libpq has them by itself."""
    from psycopg import pq

    usual = {
        get_default.keyword.decode(): (get_default.compiled or b"").decode()
        for get_default in pq.Conninfo.get_defaults()
    }
    return [keyword for keyword in sorted(result.keys() - _KNOWN) if result[keyword] != usual.get(keyword)]


def _from_environment() -> dict[str, str]:
    """Settings that libpq takes from variables and sends when a session begins."""
    given = {setting: os.environ.get(name, "") for name, setting in _STARTUP.items()}
    return {setting: value for setting, value in given.items() if value and value.lower() != "default"}


def _ways(required: str) -> list[str] | None:
    """``require_auth`` as a list of ways; None is any. libpq has checked the list before."""
    if not required:
        return None
    words = required.split(",")
    if words[0].startswith("!"):
        ways = [way for way in _WAYS if f"!{way}" not in words]
    else:
        ways = [way for way in _WAYS if way in words]
    if not ways:
        raise _refused("require_auth", f"the engine logs in by {', '.join(_WAYS[1:])}, or without being asked")
    return ways


def _uid(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise _refused("requirepeer", f"this machine has no user {name}") from None


def _tls(result: Mapping[str, str]) -> dict[str, Any]:
    """How the session is encrypted, and whom it trusts: libpq's ``initialize_SSL``."""
    least, most = result.get("ssl_min_protocol_version", ""), result.get("ssl_max_protocol_version", "")
    if most and most not in _VERSIONS:
        raise _refused("ssl_max_protocol_version", f"the engine supports {' and '.join(_VERSIONS)}")
    roots, verify = _roots(result)
    return {
        "verify": verify,
        "roots": [str(path) for path in roots],
        "crls": [str(path) for path in _revoked(result)] if roots else [],
        "certificate": _certificate(result),
        "certificate_required": result.get("sslcertmode") == "require",
        "version_min": least if least in _VERSIONS else None,
        "version_max": most or None,
        "sni": result.get("sslsni", "1") != "0",
        "direct": result.get("sslnegotiation") == "direct",
    }


def _roots(result: Mapping[str, str]) -> tuple[list[Path], str]:
    """Trusted certificates. Where there are any, even ``require`` checks who issued the server's."""
    named = result.get("sslrootcert") or str(_home("root.crt"))
    mode = result.get("sslmode", "")
    if named == "system":
        return _system_roots(), "full"
    if not mode.startswith("verify-") and not Path(named).exists():
        return [], "none"
    return [Path(named)], "full" if mode == "verify-full" else "ca"


def _system_roots() -> list[Path]:
    paths = ssl.get_default_verify_paths()
    if paths.cafile:
        return [Path(paths.cafile)]
    folder = Path(paths.capath or "/etc/ssl/certs")
    bundle = folder / "ca-certificates.crt"
    return [bundle] if bundle.exists() else sorted(folder.glob("*.[0-9]"))


def _revoked(result: Mapping[str, str]) -> list[Path]:
    named = [Path(result[keyword]) for keyword in ("sslcrl", "sslcrldir") if result.get(keyword)]
    # A file that is not there is passed over by libpq; a directory counts even if it is empty.
    return [path for path in named or [_home("root.crl")] if path.exists()]


def _certificate(result: Mapping[str, str]) -> dict[str, str] | None:
    file = Path(result.get("sslcert") or _home("postgresql.crt"))
    if result.get("sslcertmode") == "disable" or not file.exists():
        return None
    return {"file": str(file), "key": result.get("sslkey") or str(_home("postgresql.key"))}


def _home(name: str) -> Path:
    return Path("~").expanduser() / ".postgresql" / name


def _require_no_gssapi(connection: Connection, result: Mapping[str, str]) -> None:
    """Sessions that GSSAPI encrypts must not be followed by others in clear."""
    if result.get("gssencmode") == "require":
        raise _refused("gssencmode", "the engine does not encrypt by GSSAPI")
    pgconn = connection.pgconn
    if pgconn.ssl_in_use or not pgconn.hostaddr or result.get("gssencmode") == "disable":
        return
    row = connection.execute(_GSS_ENCRYPTED).fetchone()
    if row is not None and row[0]:
        raise InputError(
            "libpq's session is encrypted by GSSAPI, and the engine's would not be encrypted",
            remedy="use TLS: gssencmode=disable sslmode=require",
        )


def _is_utf8(name: str) -> bool:
    return re.sub("[^a-z0-9]", "", name.lower()) in _UTF8


def _refused(keyword: str, why: str) -> InputError:
    return InputError(
        f"the connection's {keyword} is not supported: {why}",
        remedy=f"remove {keyword} from the connection string, the service file and the environment",
    )


def public_dsn(dsn: str) -> str:
    """What a record may say of a connection string: its service, host, port, database and user."""
    from psycopg.conninfo import conninfo_to_dict, make_conninfo

    parts = conninfo_to_dict(dsn)
    return make_conninfo(
        "", **{name: parts[name] for name in ("service", "host", "port", "dbname", "user") if name in parts}
    )


def wrong_in(dsn: str) -> str | None:
    """Why a connection string must not stand in a file or on a command line: it cannot be read, or holds a password."""
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # libpq's message repeats what it could not read, which may be the password.
        return "dsn is not a connection string; write it as `host=db.example dbname=app user=bench`"
    secret = sorted(_SECRET & parts.keys())
    if not secret:
        return None
    return f"a {secret[0]} does not belong in a file or on a command line; use a service file, PGPASSFILE or PGPASSWORD"


def refuse_secrets(dsn: str, flag: str, command: str) -> None:
    """A command line is public to everybody on the machine: :class:`InputError` for what :func:`wrong_in` finds in ``flag``."""
    if (why := wrong_in(dsn)) is not None:
        raise InputError(f"{flag}: {why}", remedy=f"see `pgdyno {command} --help`")
