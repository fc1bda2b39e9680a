"""The page on loopback: what it answers, and where it refuses to listen."""

from __future__ import annotations

import http.client
import socket
import struct
import threading
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from pgdyno.advise.metrics import open_metrics
from pgdyno.base.errors import HostError, InputError

from .exposition import parse
from .test_open_metrics import SPEC, said

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@contextmanager
def serving(exposition: Callable[[], str]) -> Iterator[tuple[str, int]]:
    """A server on a free port for the length of a ``with`` block."""
    with open_metrics.MetricsServer(("127.0.0.1", 0), exposition) as metrics_server:
        thread = threading.Thread(target=metrics_server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield str(metrics_server.server_address[0]), int(metrics_server.server_address[1])
        finally:
            metrics_server.shutdown()
            thread.join(10)
            assert not thread.is_alive()


def ask(address: tuple[str, int], path: str) -> tuple[int, str, str]:
    """Status, type and body."""
    connection = http.client.HTTPConnection(*address, timeout=60)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def test_a_question_for_the_headers_gets_those_of_the_page() -> None:
    with serving(lambda: "up 1\n# EOF\n") as address:
        for path, status in ((open_metrics.PATH, 200), ("/other", 404)):
            connection = http.client.HTTPConnection(*address, timeout=60)
            try:
                connection.request("HEAD", path)
                answer = connection.getresponse()
                assert (answer.status, answer.read()) == (status, b"")
                assert int(answer.headers["Content-Length"]) > 0
                assert answer.headers["Content-Type"] == ask(address, path)[1]
            finally:
                connection.close()


def test_the_page_is_made_for_each_request() -> None:
    texts = iter(["first\n", "second\n"])
    with serving(lambda: next(texts)) as address:
        assert ask(address, "/metrics") == (200, open_metrics.CONTENT_TYPE, "first\n")
        assert ask(address, "/metrics?x=1")[2] == "second\n"
        assert ask(address, "/")[0] == 404


def test_an_error_is_said_and_the_server_lives_on() -> None:
    def fails() -> str:
        raise HostError("the volumes belong to another user", remedy="use sudo")

    with serving(fails) as address:
        for _ in range(2):
            status, _, body = ask(address, "/metrics")
            assert (status, body) == (503, "the volumes belong to another user\n")


def test_a_volume_that_was_detached_is_down_and_hides_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    stays = SimpleNamespace(name="stays", spec=SPEC, stats=said)
    monkeypatch.setattr(open_metrics, "list_volumes", lambda: [stays])
    families = parse(open_metrics.attached_exposition(["goes", "stays"], known=True))
    up = families["pgdyno_volume_up"]
    assert (up.value(volume="goes"), up.value(volume="stays")) == (0, 1)
    assert [labels["volume"] for _, labels, _ in families["pgdyno_volume"].samples] == ["stays"]
    assert set(parse(open_metrics.attached_exposition([]))) == set(families), "without names, all that are attached"


def test_who_hangs_up_before_the_answer_leaves_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    event, hung_up, answering = threading.Event(), threading.Event(), list[threading.Thread]()

    def slow() -> str:
        answering.append(threading.current_thread())
        event.set()
        assert hung_up.wait(10)
        return "late\n"

    with serving(slow) as address:
        with socket.create_connection(address) as client:
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            assert event.wait(10)
            # Closed at once and not in order: the server's first word meets a connection that is gone.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        hung_up.set()
        answering[0].join(10)
        assert not answering[0].is_alive()
    assert capsys.readouterr().err == ""


def test_a_port_that_is_taken_is_refused() -> None:
    with serving(str) as address, pytest.raises(HostError, match="cannot listen"):
        open_metrics.MetricsServer(address, str)


@pytest.mark.parametrize("listen", ["0.0.0.0:9273", "10.0.0.1:9273", "127.0.0.1:70000"])
def test_what_is_not_on_loopback_is_refused(listen: str) -> None:
    with pytest.raises(InputError, match="loopback"):
        open_metrics.parse_listen(listen)


@pytest.mark.parametrize("listen", ["9273", "localhost", "127.0.0.1:", "::1:9273", "host:1"])
def test_what_is_no_address_is_refused(listen: str) -> None:
    with pytest.raises(InputError, match="is not an address"):
        open_metrics.parse_listen(listen)


def test_loopback_is_listened_on() -> None:
    assert open_metrics.parse_listen(open_metrics.DEFAULT_LISTEN) == ("127.0.0.1", 9273)
    assert open_metrics.parse_listen("localhost:0") == ("127.0.0.1", 0)
