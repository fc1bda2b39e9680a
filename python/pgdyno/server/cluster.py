"""One PostgreSQL cluster: make it, start it, connect to it, stop it.

The server listens on a local socket in a directory that only its user (and root) can enter, so no password exists;
a TCP port is opened only when asked for, with a password that is written nowhere but in memory.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..base.endpoint import Endpoint, local
from ..base.errors import HostError, InputError, PgdynoError
from ..machine import paths, preflight, shared_memory
from ..machine.instance import InstanceGroup
from ..machine.journal import SERVER_NAME, HostJournal
from ..machine.launch import LaunchedProgram, SystemUser, launch
from ..machine.process import end_all, working_below
from ..machine.waiting import wait_until
from . import settings as settings_module
from . import tls
from .binaries import PgBinaries
from .user import require_reachable, server_user

if TYPE_CHECKING:
    import psycopg

StopMode = Literal["smart", "fast", "immediate"]
SUPERUSER = "postgres"
DATABASE = "postgres"
LOOPBACK = "127.0.0.1"
CONF_FILE = "pgdyno.conf"
"""Included by postgresql.conf and written again at every start."""
INITDB_TIMEOUT_S = 300.0
START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 120.0
_STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_SOCKET_PATH_BYTES_MAX = 107
_LOG_TAIL_LINES = 12


class Cluster:
    """A data directory and the server on it.

    ``data_dir`` should be a subdirectory of a mount: the root of an ext4 holds ``lost+found``. ``run_dir`` (default:
    a new directory in the state directory) gets the socket and the log, so that neither costs I/O on the volume.
    ``port`` names the socket; ``tcp`` is an address of this machine on which it is opened too. ``database`` is the one that sessions are in, ``role``
    the one that may log in by TCP, with a password that is drawn at each start; ``logins`` are all that may, if there are several.
    ``certify`` writes ``server.crt`` and ``server.key`` into a directory: then all that comes by TCP is encrypted, if these programs have TLS.
    """

    def __init__(
        self,
        binaries: PgBinaries,
        data_dir: Path,
        *,
        run_dir: Path | None = None,
        user: SystemUser | None = None,
        port: int = 5432,
        tcp: str | None = None,
        database: str = DATABASE,
        role: str = SUPERUSER,
        logins: Sequence[str] = (),
        certify: Callable[[Path], object] | None = None,
        journal: HostJournal | None = None,
    ) -> None:
        self.binaries = binaries
        self.data_dir = data_dir.resolve()
        self.user = user or server_user()
        self.port = port
        self.tcp = tcp
        self.database = database
        self.role = role
        self.logins = tuple(logins) or (role,)
        self.password: str | None = None
        self.encrypted = False
        """Whether TCP is by TLS alone; known once the server was started."""
        self._certify = certify
        self._journal = journal or HostJournal()
        self._owns_run_dir = run_dir is None
        self.run_dir = (run_dir or self._journal.state_dir / "postgres" / secrets.token_hex(4)).resolve()
        self._server: LaunchedProgram | None = None
        self._started = 0.0
        self._entries: list[str] = []
        self._segments: set[str] = set()
        self._run_dir_entry: str | None = None

    @property
    def socket_dir(self) -> Path:
        """The directory of the server's socket: what libpq takes as ``host``."""
        return self.run_dir / "socket"

    @property
    def log_path(self) -> Path:
        """What the server and initdb wrote."""
        return self.run_dir / "postgres.log"

    @property
    def dsn(self) -> str:
        """Connection string of the superuser over the local socket; a name with a space in it is quoted."""
        return self.dsn_of(SUPERUSER)

    def dsn_of(self, role: str, database: str | None = None) -> str:
        """Connection string of a role over the local socket."""
        from psycopg.conninfo import make_conninfo

        return make_conninfo(host=str(self.socket_dir), port=self.port, user=role, dbname=database or self.database)

    @property
    def endpoint(self) -> Endpoint:
        """How the engine reaches it: as ``dsn``, and by nothing of the caller's environment."""
        return local(self.dsn)

    @property
    def version(self) -> str:
        """The server's version, as ``18.6``."""
        return self.binaries.version

    @property
    def pid(self) -> int:
        """The process id of the postmaster. Only while it is started."""
        if self._server is None:
            raise PgdynoError("this PostgreSQL is not started", remedy="start it first")
        return self._server.process.pid

    @property
    def alive(self) -> bool:
        """Whether the postmaster runs."""
        return self._server is not None and self._server.process.poll() is None

    def initdb(
        self,
        *,
        wal_dir: Path | None = None,
        wal_segment_mib: int | None = None,
        timeout_s: float = INITDB_TIMEOUT_S,
    ) -> None:
        """Make a new cluster in an empty or absent ``data_dir``, with UTF-8, the C locale and checksums.

        ``wal_dir`` is a new directory for the WAL on another file system, ``wal_segment_mib`` the size of its segments
        (16 MiB by default).
        """
        if self.data_dir.is_dir() and any(self.data_dir.iterdir()):
            raise InputError(f"{self.data_dir} is not empty", remedy="name an empty or a new directory")
        self._prepare_run_dir()
        for folder in (self.data_dir, *([wal_dir] if wal_dir is not None else [])):
            folder.mkdir(exist_ok=True)
            self.give(folder)
            require_reachable(folder, self.user)
        command: list[str | Path] = [
            self.binaries.program("initdb"),
            *("-D", self.data_dir, "-U", SUPERUSER, "--auth=trust"),
            *("--encoding=UTF8", "--locale=C", "--data-checksums"),
            *(("--waldir", wal_dir) if wal_dir is not None else ()),
            *((f"--wal-segsize={wal_segment_mib}",) if wal_segment_mib is not None else ()),
        ]
        job = launch(command, journal=self._journal, name="initdb", **self._launch_options())
        try:
            code = job.process.wait(timeout_s)
        except BaseException as error:
            self._kill_everything(job)
            if isinstance(error, subprocess.TimeoutExpired):
                raise self._failure(f"initdb did not end within {timeout_s:g} s") from None
            raise
        finally:
            if job.process.poll() is not None:
                self._journal.done(job.entry_id)
        if code != 0:
            raise self._failure(f"initdb ended with exit code {code}")
        with (self.data_dir / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(f"\ninclude_if_exists = '{CONF_FILE}'\n")

    def start(
        self,
        settings: Mapping[str, str] | None = None,
        instance: InstanceGroup | None = None,
        *,
        given_up: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        timeout_s: float = START_TIMEOUT_S,
    ) -> None:
        """Start the server, inside ``instance`` from its first instruction on, and wait until it takes connections.

        ``given_up`` are settings that are refused elsewhere because they give up durability; the caller records them.
        ``environment`` is added to what the programs have.
        On failure nothing is left running, and the error shows the end of the server's log.
        """
        if self.alive:
            raise PgdynoError(f"a server runs on {self.data_dir} already", remedy="stop it first")
        if self.tcp is not None:
            preflight.require_free_port(self.port, self.tcp)
        self._prepare_run_dir()
        require_reachable(self.data_dir, self.user)
        self.write_configuration(settings or {}, given_up)
        self._server = launch(
            [self.binaries.program("postgres"), "-D", self.data_dir],
            journal=self._journal,
            name=SERVER_NAME,
            join_files=instance.join_files if instance is not None else (),
            **self._launch_options(environment),
        )
        self._started = time.monotonic()
        self._entries = [self._server.entry_id]
        try:
            if not wait_until(lambda: self._ready() or not self.alive, timeout_s):
                raise self._failure(f"PostgreSQL took no connections within {timeout_s:g} s")
            if not self.alive:
                raise self._failure("PostgreSQL did not start")
            self._segments = shared_memory.posix_names([self._server.identity])
            self._entries.append(self._journal.record("shared_memory", pid=self.pid, posix=sorted(self._segments)))
            if self.tcp is not None and self.password is None:  # after a crash clients know the one that it has
                self._set_password()
        except BaseException:
            self._kill()
            raise

    def write_configuration(self, settings: Mapping[str, str], given_up: Mapping[str, str] | None = None) -> None:
        """What :meth:`start` does first: the server's configuration, and who may connect."""
        self._prepare_run_dir()
        ours = {
            "listen_addresses": self.tcp or "",
            "port": str(self.port),
            "unix_socket_directories": str(self.socket_dir),
            "log_line_prefix": "%m [%p] ",
            "log_checkpoints": "on",
            **self._tls(),
        }
        lines = "".join(f"{name} = {settings_module.quote(value)}\n" for name, value in ours.items())
        refused = "".join(f"{name} = {settings_module.quote(value)}\n" for name, value in (given_up or {}).items())
        self._write(self.data_dir / CONF_FILE, lines + settings_module.render(settings) + refused)
        self._write(self.data_dir / "pg_hba.conf", "local all all trust\n" + self._tcp_rule())

    def _tcp_rule(self) -> str:
        """Who may log in by TCP: on loopback this machine, else every host that knows the password."""
        if self.tcp is None:
            return ""
        kind = "hostssl" if self.encrypted else "host"
        return f"{kind} all all {'127.0.0.1/32' if self.tcp == LOOPBACK else 'all'} scram-sha-256\n"

    def _tls(self) -> dict[str, str]:
        """Settings; none without a certificate, or if the programs have no TLS."""
        self.encrypted = self._certify is not None and tls.has_tls(self.binaries, self.data_dir)
        if self._certify is None or not self.encrypted:
            return {}
        return tls.settings(self.run_dir / "tls", self._certify, self.give)

    def death(self) -> PgdynoError | None:
        """What the server died of if it ended by itself, with the end of its log; None while it runs or where it was stopped."""
        if self._server is None:
            return None
        process = self._server.process
        if process.poll() is None and self._server.identity.ending():  # its parent can wait for it last of all
            wait_until(lambda: process.poll() is not None, STOP_TIMEOUT_S)
        if (code := process.poll()) is None:
            return None
        how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
        lasted_s = time.monotonic() - self._started
        tail = self.log_tail()
        return PgdynoError(
            f"PostgreSQL {how} after {lasted_s:.0f} s" + (f"; its log ends:\n{tail}" if tail else ""),
            remedy="if memory ran out, `dmesg` names the process that the kernel killed",
        )

    def stop(self, mode: StopMode = "fast", *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop the server and wait. One that does not end in time is killed, and that is an error.

        Stopping a stopped server does nothing; a server that died by itself is tidied up after.
        """
        if self._server is None:
            return
        if self.alive:
            self._server.process.send_signal(_STOP_SIGNALS[mode])
        try:
            self._server.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            failure = self._failure(f"PostgreSQL did not stop ({mode}) within {timeout_s:g} s and was killed")
            self._kill()
            raise failure from None
        except BaseException:
            self._kill()
            raise
        self._forget()

    def kill(self) -> None:
        """End the server and all its processes at once, as a crash would (and remove its shared memory)."""
        self._kill()

    @contextlib.contextmanager
    def running(
        self, settings: Mapping[str, str] | None = None, instance: InstanceGroup | None = None
    ) -> Iterator[Cluster]:
        """The started server for the length of a ``with`` block; stopped fast at its end, at once after an error."""
        self.start(settings, instance)
        try:
            yield self
        except BaseException as error:
            died = self.death() if isinstance(error, Exception) else None
            with contextlib.suppress(PgdynoError):  # the first error is the one to tell
                self.stop("immediate", timeout_s=10.0)
            if died is not None:
                raise died from error
            raise
        else:
            self.stop("fast")

    def connect(self, **options: Any) -> psycopg.Connection[tuple[Any, ...]]:
        """A psycopg connection as the superuser (autocommit by default)."""
        import psycopg

        return psycopg.connect(self.dsn, **({"autocommit": True} | options))

    def settings(self) -> list[dict[str, str | None]]:
        """Every setting as the server reports it: name, setting, unit, source, boot_val."""
        with self.connect() as connection:
            return settings_module.of_server(connection)

    def give(self, path: Path) -> None:
        """Give a directory or a file to the server; other users may not enter or read it."""
        path.chmod(0o700 if path.is_dir() else 0o600)
        if self.user is not None:
            os.chown(path, self.user.uid, self.user.gid)

    def log_tail(self, lines: int = _LOG_TAIL_LINES) -> str:
        """The last lines of the log; empty when there is none."""
        try:
            text = self.log_path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""
        return "\n".join(text.splitlines()[-lines:])

    def close(self) -> None:
        """Stop a server that still runs and remove the run directory if it was made here."""
        self.stop("immediate", timeout_s=10.0)
        if self._run_dir_entry is not None:
            shutil.rmtree(self.run_dir, ignore_errors=True)
            self._journal.done(self._run_dir_entry)
            self._run_dir_entry = None

    # ---- below: how it is done ----

    def _launch_options(self, environment: Mapping[str, str] | None = None) -> dict[str, Any]:
        known = self.binaries.environment | dict(environment or {})
        return {"log": self.log_path, "env": known, "user": self.user, "folder": self.data_dir}

    def _prepare_run_dir(self) -> None:
        socket = f"{self.socket_dir}/.s.PGSQL.{self.port}"
        if len(os.fsencode(socket)) > _SOCKET_PATH_BYTES_MAX:
            raise InputError(
                f"the path of PostgreSQL's socket would be longer than {_SOCKET_PATH_BYTES_MAX} bytes: {socket}",
                remedy="choose a shorter state directory (PGDYNO_STATE_DIR)",
            )
        if self._owns_run_dir and self._run_dir_entry is None:
            # It holds the log of a server that did not start, so it lasts as long as this command.
            self._run_dir_entry = self._journal.record("directory", path=str(self.run_dir))
        paths.make_walkable(self.run_dir)
        self.socket_dir.mkdir(exist_ok=True)
        self.give(self.socket_dir)
        require_reachable(self.socket_dir, self.user)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text, encoding="utf-8")
        self.give(path)

    def _ready(self) -> bool:
        """What pg_ctl looks at: the eighth line of the server's own lock file."""
        try:
            lines = (self.data_dir / "postmaster.pid").read_text(encoding="utf-8").splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _set_password(self) -> None:
        from psycopg import sql

        self.password = secrets.token_urlsafe(18)
        with self.connect() as connection:
            for role in self.logins:
                # Hashed here: a server that logs slow statements would log the password with this one.
                verifier = connection.pgconn.encrypt_password(self.password.encode(), role.encode(), b"scram-sha-256")
                statement = sql.SQL("ALTER ROLE {} PASSWORD {}")
                connection.execute(statement.format(sql.Identifier(role), sql.Literal(verifier.decode())))

    def _failure(self, message: str) -> HostError:
        tail = self.log_tail()
        return HostError(f"{message}; its log ends:\n{tail}" if tail else message, remedy=f"read {self.log_path}")

    def _kill(self) -> None:
        if self._server is not None:
            self._kill_everything(self._server)
            self._forget()

    def _kill_everything(self, job: LaunchedProgram) -> None:
        children = working_below(self.data_dir)
        self._segments |= shared_memory.posix_names([job.identity, *children])
        job.process.kill()
        children += working_below(self.data_dir)
        end_all(children)
        for child in children:
            # initdb's server has a segment of its own; a postmaster's children have none.
            shared_memory.remove(child.pid, ())
        with contextlib.suppress(subprocess.TimeoutExpired):  # it waits for a disk; the clean-up cuts that
            job.process.wait(10.0)

    def _forget(self) -> None:
        """The server is dead: see to what a crash leaves behind, then to the journal."""
        assert self._server is not None
        if self._server.process.poll() is None:
            return
        # After a crash the children notice by themselves and go; they hold the shared memory until then.
        if not wait_until(lambda: not working_below(self.data_dir), 5.0):
            end_all(working_below(self.data_dir))
        shared_memory.remove(self._server.process.pid, self._segments)
        for entry in self._entries:
            self._journal.done(entry)
        self._entries, self._segments, self._server = [], set(), None
