"""What a server may not do during a log-in. libpq stands beside as the truth: the engine accepts nothing that libpq refuses, and
sends no password, hash or proof where libpq sends none."""

from __future__ import annotations

import os
import select
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from psycopg import pq
from psycopg.conninfo import make_conninfo

from pgdyno.base import endpoint
from pgdyno.base.errors import InputError
from tests.drive import secured

from . import fake_server
from .fake_server import SECRET, FakeServer, Record, Script

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Certificate = tuple[Path, Path]

MODES = ("disable", "require")
BINDINGS = ("disable", "prefer", "require")
WAYS = (
    None,
    "scram-sha-256",
    "password",
    "md5",
    "none",
    "!password",
    "!none",
    "scram-sha-256,none",
    "!md5,!scram-sha-256",
)
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
STRICTER = {"connection.auth.unfinished", "connection.auth.order"}
"""Where libpq believes a server and the engine does not: one that ends SCRAM without its proof, where `require_auth` is not given,
and one that asks again after it had an answer."""
BENCH_LOG_INS = int(os.environ.get("PGDYNO_LOG_INS", "500"))
CLEAR = "disable"


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
        given |= {
            "sslmode": self.mode,
            "channel_binding": self.binding,
            "gssencmode": "disable",
            "connect_timeout": "20",
        }
        given |= {"require_auth": self.ways} if self.ways is not None else {}
        return make_conninfo(**(given | more))

    def libpq(self, port: int) -> str | None:
        """Why libpq does not log in; None if it does."""
        dsn = self.dsn(port, **({"password": SECRET} if self.password else {}))
        pgconn = pq.PGconn.connect_start(dsn.encode())
        status: int = pq.PollingStatus.WRITING
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
        effective = endpoint.effective(self.dsn(port, **more))
        where = endpoint.ServerAddress("localhost", port, "127.0.0.1")
        password = SECRET if self.password else None
        try:
            endpoint.described(effective, where, password, encrypted=self.mode == "require").check()
        except InputError as error:
            return error
        return None


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    """Signed by itself."""
    reason = secured.missing_openssl()
    if reason is not None:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("fake")
    configuration = folder / "fake.cnf"
    configuration.write_text("[req]\ndistinguished_name = subject\nprompt = no\n[subject]\nCN = localhost\n")
    words = ("req", "-x509", *secured.EC_KEY, "-days", "2", "-keyout", "fake.key", "-out", "fake.crt")
    secured.openssl(folder, *words, configuration=configuration)
    return folder / "fake.crt", folder / "fake.key"


@pytest.fixture(scope="module")
def server(certificate: Certificate) -> Iterator[FakeServer]:
    with fake_server.fake_server(*certificate) as started:
        yield started


@pytest.fixture(autouse=True)
def empty_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path_factory.getbasetemp()))
    for name in [name for name in os.environ if name.startswith("PG") and not name.startswith("PGDYNO")]:
        monkeypatch.delenv(name)


def refused(server: FakeServer, client: Client, script: Script, **more: str) -> tuple[InputError, Record]:
    """How the engine refuses a server, and what it gave away."""
    server.script = script
    error = client.engine(server.port, **more)
    assert error is not None
    return error, server.record()


def compare(server: FakeServer, client: Client, steps: tuple[str, ...]) -> str | None:
    """libpq and the engine on one server: the code of the engine's refusal, if it refuses."""
    server.script = Script(steps)
    libpq, libpqs = client.libpq(server.port), server.record()
    engine, engines = client.engine(server.port), server.record()
    case = (client, steps, libpq, engine and (engine.code, engine.message))
    assert set(engines.sent) <= set(libpqs.sent), case
    assert not engines.asked, case
    if engine is None:
        assert libpq is None, case
        before = steps[: steps.index("Z")]
        if any(step.startswith("R10") for step in before):
            assert "proof" in engines.sent, case
            assert "R12" in before, case
        return None
    assert engine.code.startswith("connection."), case
    if libpq is None:
        assert engine.code in STRICTER, case
    return engine.code


@pytest.mark.parametrize("steps", HONEST.values(), ids=HONEST)
def test_an_honest_server_is_accepted_where_libpq_accepts_it(server: FakeServer, steps: tuple[str, ...]) -> None:
    for mode in MODES:
        for binding in BINDINGS:
            compare(server, Client(mode, binding), steps)
    if steps[0] in ("R0", "R3", "R10 both"):
        for ways in WAYS:
            compare(server, Client(ways=ways), steps)
    compare(server, Client(password=False), steps)


REQUIRES = Client(binding="require")
SCRAM_ALONE = Client(CLEAR, ways="scram-sha-256")
REFUSED = [
    # SCRAM that is not finished proves nothing.
    (Client(binding="require", ways="scram-sha-256"), ("R10 plus", "R0", *TAIL), "auth.unfinished"),
    (Client(binding="require", ways="scram-sha-256"), ("R10 plus", "R11", "R0", *TAIL), "auth.unfinished"),
    (Client(), ("R10 both", "R0", *TAIL), "auth.unfinished"),
    (Client(ways="scram-sha-256,none"), ("R10 both", "R11", "R0", *TAIL), "auth.unfinished"),
    (REQUIRES, ("R10 plus", "R11", "R12 wrong", "R0", *TAIL), "auth.server_signature"),
    (REQUIRES, ("R10 plus", "R11", "R12 error", "R0", *TAIL), "auth.server_signature"),
    (REQUIRES, ("R10 plus", "R11", "R12 garbage", "R0", *TAIL), "auth.server_signature"),
    (Client(CLEAR), ("R10 plain", "R11 nonce", "R12", "R0", *TAIL), "auth.scram"),
    (Client(CLEAR), ("R10 plain", "R11 zero", "R12", "R0", *TAIL), "auth.scram"),
    (Client(CLEAR), ("R10 plain", "R11 garbage", "R12", "R0", *TAIL), "auth.scram"),
    # Channel binding that is required is there before anything secret leaves.
    (REQUIRES, ("R3", "R0", *TAIL), "auth.channel_binding"),
    (REQUIRES, ("R5", "R0", *TAIL), "auth.channel_binding"),
    (REQUIRES, ("R0", *TAIL), "auth.channel_binding"),
    (REQUIRES, ("R10 plain", "R11", "R12", "R0", *TAIL), "auth.channel_binding"),
    (Client(CLEAR, binding="require"), ("R10 plain", "R11", "R12", "R0", *TAIL), "auth.channel_binding"),
    (Client(CLEAR), ("R10 both", "R11", "R12", "R0", *TAIL), "auth.stripped"),
    # So is the way of authentication.
    (SCRAM_ALONE, ("R0", *TAIL), "auth.method"),
    (SCRAM_ALONE, ("R3", "R0", *TAIL), "auth.method"),
    (SCRAM_ALONE, ("R5", "R0", *TAIL), "auth.method"),
    (Client(CLEAR, ways="!password"), ("R3", "R0", *TAIL), "auth.method"),
    (Client(CLEAR, ways="!none"), ("R0", *TAIL), "auth.method"),
    (Client(CLEAR, ways="none"), ("R10 plain", "R11", "R12", "R0", *TAIL), "auth.method"),
    # Ways that there are not.
    (Client(CLEAR), ("R7",), "auth.unsupported"),
    (Client(CLEAR), ("R9",), "auth.unsupported"),
    (Client(CLEAR), ("R99",), "auth.unsupported"),
    (Client(CLEAR), ("R10 unknown",), "auth.mechanism"),
    (Client(CLEAR), ("R10 none",), "auth.mechanism"),
    (Client(binding="disable"), ("R10 plus",), "auth.mechanism"),
    (Client(CLEAR, password=False), ("R3",), "auth.password"),
    (Client(CLEAR, password=False), ("R10 plain",), "auth.password"),
    # What is out of its order.
    (Client(CLEAR), ("R8",), "auth.order"),
    (Client(CLEAR), ("R11",), "auth.order"),
    (Client(CLEAR), ("R12",), "auth.order"),
    (Client(CLEAR), ("R10 plain", "R3", "R0", *TAIL), "auth.order"),
    (Client(CLEAR), ("R10 plain", "R12", "R0", *TAIL), "auth.order"),
    (Client(CLEAR), ("R10 plain", "R11", "R12", "R3", "R0", *TAIL), "auth.order"),
    (Client(CLEAR), ("R3", "R5", "R0", *TAIL), "auth.order"),
    # What is no message of a log-in, or not there.
    (Client(CLEAR), ("N", "R0", *TAIL), "login.message"),
    (Client(CLEAR), ("S", "R0", *TAIL), "login.message"),
    (Client(CLEAR), ("Z",), "login.message"),
    (Client(CLEAR), ("v older", "R0", *TAIL), "login.message"),
    (Client(CLEAR), ("v newer", "R0", *TAIL), "login.message"),
    (Client(CLEAR), ("v option", "R0", *TAIL), "login.message"),
    (Client(CLEAR), ("garbage",), "login.message"),
    (Client(CLEAR), ("R0", "R3", "Z"), "login.message"),
    (Client(CLEAR), ("R0", "v newer", "Z"), "login.message"),
    (Client(CLEAR), ("R0", "T", "Z"), "login.message"),
    (Client(CLEAR), ("R0", "C", "Z"), "login.message"),
    (Client(CLEAR), ("R0", "G", "Z"), "login.message"),
    (Client(CLEAR), ("R0", "garbage", "Z"), "login.message"),
    # What is not as the protocol has it.
    (Client(CLEAR), ("R5 without salt",), "login.malformed"),
    (Client(CLEAR), ("R10 torn",), "login.malformed"),
    (Client(CLEAR), ("R without kind",), "login.malformed"),
    (Client(CLEAR), ("R huge",), "login.length"),
    (Client(CLEAR), ("R0", "S huge", "Z"), "login.length"),
    # What the server itself refuses, or does not finish.
    (Client(CLEAR), ("E",), "login.refused"),
    (Client(CLEAR), ("R3", "E"), "login.refused"),
    (Client(), ("R10 both", "E"), "login.refused"),
    (Client(), ("R10 both", "R11", "E"), "login.refused"),
    (Client(CLEAR), ("R0", "E"), "login.refused"),
    (Client(CLEAR), ("R0", "S", "N", "K"), "absent"),
]
"""A client, what a server sends to it, and the end of the code with which it is refused."""


@pytest.mark.parametrize(("client", "steps", "code"), REFUSED)
def test_a_server_that_is_not_to_be_believed_is_refused(
    server: FakeServer, client: Client, steps: tuple[str, ...], code: str
) -> None:
    assert compare(server, client, steps) == f"connection.{code}"


def test_what_a_server_may_add_behind_the_authentication_does_no_harm(server: FakeServer) -> None:
    for added in ("N", "S", "A", "K"):
        assert compare(server, Client(CLEAR), ("R0", added, *TAIL)) is None


@pytest.mark.parametrize(
    ("answer", "code"),
    [(b"N", "refused"), (b"E", "refused"), (b"x", "refused"), (b"S" + fake_server.FIXED["R0"], "plaintext")],
)
def test_a_server_without_tls_and_bytes_in_clear_behind_its_consent_are_refused(
    server: FakeServer, answer: bytes, code: str
) -> None:
    script = Script(HONEST["password"], tls_answer=answer)
    error, record = refused(server, Client(), script)
    assert error.code == f"connection.tls.{code}"
    assert record.answers == []
    server.script = script
    assert Client().libpq(server.port) is not None
    server.record()


def test_more_rounds_of_hashing_than_anybody_needs_are_refused_before_they_are_done(server: FakeServer) -> None:
    error, record = refused(server, Client(CLEAR), Script(HONEST["scram"], iterations=2_000_000_000))
    assert error.code == "connection.auth.iterations"
    assert error.data == {"iterations": 2_000_000_000, "iterations_max": 100_000}
    assert record.sent == []


def test_a_server_that_is_silent_or_trickles_is_left_at_the_deadline(certificate: Certificate) -> None:
    scripts = [
        (CLEAR, Script((), silent_at="startup")),
        (CLEAR, Script((), every_s=0.05)),
        ("require", Script((), tls_answer=b"")),
        ("require", Script((), silent_at="handshake")),
        ("require", Script((), silent_at="startup")),
        ("require", Script((), every_s=0.05)),
    ]

    def leave(mode: str, script: Script) -> None:
        with fake_server.fake_server(*certificate) as server:
            error, record = refused(server, Client(mode), script, connect_timeout="1")
            assert error.code == "connection.login.deadline", script
            assert error.data == {"host": "localhost", "port": server.port, "limit_s": 1}
            assert record.hung_up, script

    with ThreadPoolExecutor(len(scripts)) as pool:
        for left in [pool.submit(leave, mode, script) for mode, script in scripts]:
            left.result()


def test_a_client_certificate_that_must_be_asked_for_is_asked_for(server: FakeServer) -> None:
    error, record = refused(server, Client(), Script(HONEST["password"]), sslcertmode="require")
    assert error.code == "connection.tls.client_certificate"
    assert record.sent == []


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


CLIENTS = st.builds(
    Client,
    st.sampled_from(MODES),
    st.sampled_from(BINDINGS),
    st.one_of(st.none(), st.sampled_from(WAYS)),
    st.sampled_from([True, True, True, False]),
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CLIENTS, conversations())
def test_the_engine_accepts_no_server_that_libpq_refuses(
    server: FakeServer, client: Client, steps: tuple[str, ...]
) -> None:
    event(compare(server, client, steps) or "accepted")


@pytest.mark.bench
@settings(max_examples=BENCH_LOG_INS, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CLIENTS, conversations())
def test_many_log_ins(server: FakeServer, client: Client, steps: tuple[str, ...]) -> None:
    event(compare(server, client, steps) or "accepted")
