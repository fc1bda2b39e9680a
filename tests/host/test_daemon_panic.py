"""A panic in any thread of a volume's daemon: requests end with an error at once, the reason is kept, and nothing stays."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pgdyno.base.errors import HostError
from pgdyno.cli.main import run
from pgdyno.machine import volume
from pgdyno.machine.clean import clean, left_in
from tests.host.needs import expect
from tests.host.test_daemon_killed import EIO_S, read_until_an_error
from tests.support.control import ask

pytestmark = pytest.mark.needs_fuse

THREADS = ("event-loop", "release", "worker", "log-drain", "follower", "control", "main")


@pytest.fixture
def doomed(state: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> volume.AttachedVolume:
    """A volume whose daemon panics where it is asked to; its requests wait for the model, and its content is on a disk."""
    monkeypatch.setenv("PGDYNO_TEST_PANIC", "1")
    store = state.parent / "store"
    store.mkdir()
    attached = volume.attach(
        "null:service_us=500", mount=None, name="doomed", store=str(store), submit_log=state.parent / "log"
    )

    attached.keep()  # so that a clean-up takes it, as one that a command left

    def end() -> None:  # one that hangs would keep the test's reader for ever
        with contextlib.suppress(ProcessLookupError):
            os.kill(attached.daemon.pid, signal.SIGKILL)

    request.addfinalizer(end)
    return attached


@pytest.mark.parametrize("thread", THREADS)
def test_a_panic_ends_requests_with_an_error_and_leaves_its_reason(
    state: Path, doomed: volume.AttachedVolume, thread: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(read_until_an_error, doomed.block_device, 1)
        expect(lambda: doomed.stats()["counters"]["read_ops"] > 100, "it reads")
        begin = time.monotonic()
        with contextlib.suppress(OSError):  # the thread that answers may be the one that panics
            ask(doomed, {"command": "panic", "thread": thread})
        try:
            ended, error = reading.result(10)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(doomed.daemon.pid, signal.SIGKILL)
    assert error == errno.EIO
    assert ended - begin <= EIO_S
    with pytest.raises(HostError) as caught:
        doomed.stats()
    assert caught.value.code == "volume.daemon.dead"
    assert "to panic" in caught.value.data["panic"]
    # Its last thread may still be on its way out.
    expect(lambda: volume.states(state)["doomed"]["state"] == "dead" and not doomed.alive, "it is dead")
    assert "to panic" in doomed.log_path.read_text()
    if thread == "release":
        assert run(["volume", "detach", "doomed"]) == 0
        assert "to panic" in capsys.readouterr().err
    else:
        assert clean(state)
    assert left_in(state) == []


def test_a_daemon_that_was_not_started_for_tests_does_not_panic(state: Path) -> None:
    with volume.attached("null", mount=None) as attached:
        assert ask(attached, {"command": "panic", "thread": "control"}) == {"ok": {"panics": False}}
        assert attached.stats()["counters"]["queue_length"] == 0
