"""What a server may not do during a log-in. libpq stands beside as the truth: the engine accepts nothing that libpq refuses, and
sends no password, hash or proof where libpq sends none."""

from __future__ import annotations

import os
import select
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg import pq
from psycopg.conninfo import make_conninfo

from pgdyno import endpoint
from pgdyno.errors import InputError
from tests.drive import secured

from . import fake_server
from .fake_server import SECRET, FakeServer, Record, Script

if TYPE_CHECKING:
    from collections.abc import Iterator

MODES = ("disable", "require")
BINDINGS = ("disable", "prefer", "require")
WAYS = (None, "scram-sha-256", "password", "md5", "none", "!password", "!none", "scram-sha-256,none", "!md5,!scram-sha-256")
TAIL = ("S", "K", "Z")
HONEST = {
    "trust": ("R0", *TAIL),
    "password": ("R3", "R0", *TAIL),
    "md5": ("R5", "R0", *TAIL),
    "scram": ("R10 plain", "R11", "R12", "R0", *TAIL),
    "plus": ("R10 plus", "R11", "R12", "R0", *TAIL),
    "both": ("R10 both", "R11", "R12", "R0", *TAIL),
}
"""What servers send that mean no harm."""
STRICTER = {"connection.auth.unfinished", "connection.auth.again"}
"""Where libpq believes a server and the engine does not: one that ends SCRAM without its proof, where `require_auth` is not given,
and one that asks again after it had an answer."""
EXAMPLES = int(os.environ.get("PGDYNO_LOG_INS", "60"))


@dataclass(frozen=True)
class Client:
    """How a client connects."""

    mode: str = "require"
    binding: str = "prefer"
    ways: str | None = None
    password: bool = True

    def dsn(self, port: int, **more: str) -> str:
        """Its connection string."""
        given = {"host": "localhost", "hostaddr": "127.0.0.1", "port": str(port), "user": "lab", "dbname": "lab"}
        given |= {"sslmode": self.mode, "channel_binding": self.binding, "gssencmode": "disable", "connect_timeout": "20"}
        given |= {"require_auth": self.ways} if self.ways is not None else {}
        return make_conninfo(**(given | more))

    def libpq(self, port: int) -> str | None:
        """Why libpq does not log in; None if it does."""
        dsn = self.dsn(port, **({"password": SECRET} if self.password else {}))
        pgconn = pq.PGconn.connect_start(dsn.encode())
        status = pq.PollingStatus.WRITING
        while status in (pq.PollingStatus.WRITING, pq.PollingStatus.READING):
            reads = [pgconn.socket] if status == pq.PollingStatus.READING else []
            writes = [pgconn.socket] if status == pq.PollingStatus.WRITING else []
            assert any(select.select(reads, writes, [], 2 * fake_server.WAIT_S)), "libpq waits for nothing"
            status = pgconn.connect_poll()
        refusal = None if status == pq.PollingStatus.OK else pgconn.error_message.decode()
        pgconn.finish()
        return refusal

    def engine(self, port: int, **more: str) -> InputError | None:
        """The same of the engine."""
        asked = endpoint.effective(self.dsn(port, **more))
        where = endpoint.Address("localhost", port, "127.0.0.1")
        password = SECRET if self.password else None
        try:
            endpoint.described(asked, where, password, encrypted=self.mode == "require").check()
        except InputError as error:
            return error
        return None


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeServer]:
    reason = secured.missing_openssl()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("fake")
    configuration = folder / "fake.cnf"
    configuration.write_text("[req]\ndistinguished_name = subject\nprompt = no\n[subject]\nCN = localhost\n")
    words = ("req", "-x509", *secured.EC_KEY, "-days", "2", "-keyout", "fake.key", "-out", "fake.crt")
    secured.openssl(folder, *words, configuration=configuration)
    with fake_server.fake_server(folder / "fake.crt", folder / "fake.key") as started:
        yield started


@pytest.fixture(autouse=True)
def empty_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp()))
    for name in [name for name in os.environ if name.startswith("PG") and not name.startswith("PGDYNO")]:
        monkeypatch.delenv(name)


def refusal(server: FakeServer, client: Client, *steps: str) -> tuple[str | None, Record]:
    """The code with which the engine refuses a server, and what it gave away."""
    server.script = Script(steps)
    error = client.engine(server.port)
    return None if error is None else error.code, server.record()


def compare(server: FakeServer, client: Client, steps: tuple[str, ...]) -> None:
    """libpq and the engine on one server."""
    server.script = Script(steps)
    libpq, libpqs = client.libpq(server.port), server.record()
    engine, engines = client.engine(server.port), server.record()
    case = (client, steps, libpq, engine and (engine.code, engine.message))
    assert set(engines.sent) <= set(libpqs.sent), case
    assert not engines.asked, case
    if engine is None:
        assert libpq is None, case
        if any(step.startswith("R10") for step in steps):
            assert "proof" in engines.sent, case
            assert "R12" in steps, case
        return
    assert engine.code.startswith("connection."), case
    if libpq is None:
        assert engine.code in STRICTER, case


@pytest.mark.parametrize("steps", HONEST.values(), ids=HONEST)
def test_an_honest_server_is_accepted_where_libpq_accepts_it(server: FakeServer, steps: tuple[str, ...]) -> None:
    for mode in MODES:
        for binding in BINDINGS:
            compare(server, Client(mode, binding), steps)
    for ways in WAYS:
        compare(server, Client(ways=ways), steps)
    compare(server, Client(password=False), steps)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[str, ...]:
    """What an honest server sends, with some messages dropped, added, repeated or in another's place."""
    steps = list(draw(st.sampled_from(sorted(HONEST.values()))))
    messages = st.sampled_from([*fake_server.FIXED, *fake_server.COMPUTED])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(steps)))
        edit = draw(st.sampled_from(["drop", "add", "repeat", "replace"]))
        if edit == "add" or at == len(steps):
            steps.insert(at, draw(messages))
        elif edit == "drop":
            del steps[at]
        elif edit == "repeat":
            steps.insert(at, steps[at])
        else:
            steps[at] = draw(messages)
    return tuple(steps)


CLIENTS = st.builds(Client, st.sampled_from(MODES), st.sampled_from(BINDINGS), st.sampled_from(WAYS), st.booleans())


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CLIENTS, conversations())
def test_the_engine_accepts_no_server_that_libpq_refuses(
    server: FakeServer, client: Client, steps: tuple[str, ...]
) -> None:
    compare(server, client, steps)
