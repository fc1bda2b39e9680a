"""Every test runs in a state of its own, and must leave the machine as it found it."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import hypothesis
import pytest

from pgdyno.base import engine as _engine
from pgdyno.base.errors import PgdynoError
from tests import leaks
from tests.report import chromium
from tests.support import machine, pictures, pooler
from tools.testing.group import leave_terminal

_run_dirs: list[Path] = []

# A busy machine is no failure, and each run tries the same examples: `--hypothesis-profile=default` draws others.
hypothesis.settings.register_profile("pgdyno", deadline=None, derandomize=True)
hypothesis.settings.load_profile("pgdyno")


def pytest_configure(config: pytest.Config) -> None:
    """Give this run directories of its own: state, results and temporary files below one, images in memory."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # A shell without job control starts its background jobs so, and the commands under test would inherit it.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # Both end the tests as Ctrl-C does: fixtures take down their servers and volumes. Under nohup a hang-up is ignored, but
    # not by the commands under test, which would inherit that.
    hung_up = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    signal.signal(signal.SIGHUP, (lambda *_: None) if hung_up else _end_without_terminal)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config.pluginmanager.register(Changes())
    run_dir = Path(tempfile.mkdtemp(prefix="pgdt-")).resolve()
    shared = Path("/dev/shm")
    images = Path(tempfile.mkdtemp(prefix="pgdt-", dir=shared if os.access(shared, os.W_OK) else run_dir))
    for folder in (run_dir, images):
        folder.chmod(0o755)  # PostgreSQL's user must be able to walk through
    _run_dirs.extend((run_dir, images))
    tempfile.tempdir = None
    os.environ |= {
        "TMPDIR": str(run_dir),
        "PGDYNO_STATE_DIR": str(run_dir / "state"),
        "PGDYNO_RESULTS": str(run_dir / "results"),
        "PGDYNO_IMAGE_DIR": str(images),
        "PGDYNO_DATABASE_DIR": str(run_dir / "databases"),
        leaks.MARK: str(run_dir),
    }


def _end_without_terminal(number: int, frame: FrameType | None) -> None:
    leave_terminal()
    signal.default_int_handler(number, frame)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the run's directories, unless something is still mounted there."""
    tempfile.tempdir = None
    os.environ.pop("TMPDIR", None)
    mounted = Path("/proc/mounts").read_text(errors="replace")
    for folder in _run_dirs:
        if f" {folder}/" not in mounted:
            shutil.rmtree(folder, ignore_errors=True)


def _missing_root() -> str | None:
    return None if os.geteuid() == 0 else "needs root (mounts, loop devices, control groups)"


def _missing_engine() -> str | None:
    try:
        _engine.checked()
    except PgdynoError as error:
        return f"needs the engine: {error}"
    return None


def _missing_fuse() -> str | None:
    return _missing_root() or (None if Path("/dev/fuse").exists() else "needs /dev/fuse") or _missing_engine()


def _missing_fio() -> str | None:
    return None if shutil.which("fio") else "needs fio (apt install fio)"


def _missing_file_system(kind: str) -> str | None:
    if not _has_program(f"mkfs.{kind}"):
        package = {"xfs": "xfsprogs", "btrfs": "btrfs-progs"}[kind]
        return f"needs mkfs.{kind} (apt install {package})"
    known = Path("/proc/filesystems").read_text().split()
    module = Path("/lib/modules") / os.uname().release / "kernel/fs" / kind
    return None if kind in known or module.is_dir() else f"needs a kernel with {kind}"


def _missing_xfs() -> str | None:
    return _missing_file_system("xfs")


def _missing_btrfs() -> str | None:
    return _missing_root() or _missing_file_system("btrfs")


def _missing_qemu() -> str | None:
    if not _has_program("qemu-storage-daemon"):
        return "needs qemu-storage-daemon (apt install qemu-system-common)"
    return _missing_fuse()


def _has_program(name: str) -> bool:
    """Whether a program is in PATH or among the administrator's, which PATH may lack."""
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") is not None


def find_system_postgres() -> Path | None:
    """Programs of a PostgreSQL 14 to 19 that a package of this machine brought, the newest first."""
    versions = range(19, 13, -1)
    folders = [Path(f"/usr/lib/postgresql/{n}/bin") for n in versions] + [Path(f"/usr/pgsql-{n}/bin") for n in versions]
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "pgbench").exists()), None)


def _missing_system_postgres() -> str | None:
    return None if find_system_postgres() else "needs an installed PostgreSQL 14 to 18 (apt install postgresql)"


def _missing_chromium() -> str | None:
    return None if chromium.find() else "needs Chromium (apt install chromium)"


def _missing_pgbouncer() -> str | None:
    return None if pooler.PROGRAM else "needs PgBouncer (apt install pgbouncer)"


NEEDS: dict[str, Callable[[], str | None]] = {
    "needs_root": _missing_root,
    "needs_fuse": _missing_fuse,
    "needs_fio": _missing_fio,
    "needs_chromium": _missing_chromium,
    "needs_xfs": _missing_xfs,
    "needs_btrfs": _missing_btrfs,
    "needs_pgbouncer": _missing_pgbouncer,
    "needs_qemu": _missing_qemu,
    "needs_system_postgres": _missing_system_postgres,
}
"""For each marker what this machine lacks for it, or ``None``."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what this machine cannot run, with the reason."""
    reasons = {name: missing() for name, missing in NEEDS.items()}
    for item in items:
        for name, reason in reasons.items():
            if reason is not None and item.get_closest_marker(name) is not None:
                item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """What was imported stays to the end: a full garbage collection need not walk through all of it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """A test that sets the machine's limits waits for its turn before its fixtures are made."""
    sets = item.get_closest_marker("sets_limits") is not None
    item.stash[_limits] = None if sets else machine.Limits.look()
    with machine.limits() if sets else contextlib.nullcontext():
        return (yield)


_limits = pytest.StashKey[machine.Limits | None]()
"""The machine's limits before a test that does not say that it sets them."""

_seen: list[leaks.Snapshot] = []
"""What was there after the last test; empty when a fixture of more than one test has come or gone since."""


class Changes:
    """A server of more than one test changes what is there before the next.

    A plugin of its own: pytest does not ask the hooks of this file about fixtures of a whole session, which are the root's.
    """

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Iterator[None]:
        """It comes."""
        if fixturedef.scope != "function":
            _seen.clear()
        return (yield)

    def pytest_fixture_post_finalizer(self, fixturedef: pytest.FixtureDef[object]) -> None:
        """It has gone."""
        if fixturedef.scope != "function":
            _seen.clear()


@pytest.fixture(autouse=True)
def in_turn(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that sets the kernel's dirty limits beside others that do."""
    yield
    before, after = request.node.stash[_limits], machine.Limits.look()
    if before and after and after.set_out_of_turn(before):
        pytest.fail(
            "the kernel's dirty limits were set out of turn: mark with sets_limits what sets them, and run no other pgdyno"
            " on this machine meanwhile",
            pytrace=False,
        )


@pytest.fixture(autouse=True)
def no_leak() -> Iterator[None]:
    """Fail a test that leaves a mount, a loop device, a control group or a process, and remove what it left.

    Servers of module and session fixtures start before this looks, so they are not the test's.
    """
    run_dir = _run_dirs[0]
    before = _seen.pop() if _seen else leaks.look(run_dir)
    yield
    after = leaks.look(run_dir, before)
    if not after.since(before):
        _seen.append(after)
        return
    left = leaks.leaked(run_dir, before)
    if left:
        pytest.fail("the test left on the machine (now removed):\n  " + "\n  ".join(left), pytrace=False)


@pytest.fixture(autouse=True)
def undrawn(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave pictures out of the pages that a test writes in this process, unless it is about pictures."""
    if not any(request.node.get_closest_marker(name) for name in ("drawn", "needs_chromium")):
        for name, module in pictures.NONE.items():
            monkeypatch.setitem(sys.modules, name, module)
        if (render := sys.modules.get("pgdyno.report.render")) is not None:
            monkeypatch.setattr(render, "WIDTHS_PX", pictures.ONE_WIDTH)


@pytest.fixture
def state_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state directory of the test's own, which PostgreSQL's user can walk through; not made yet."""
    folder = Path(tempfile.mkdtemp(prefix="s-")).resolve()
    folder.chmod(0o755)
    monkeypatch.setenv("PGDYNO_STATE_DIR", str(folder / "state"))
    yield folder / "state"
    if f" {folder}/" not in Path("/proc/mounts").read_text(errors="replace"):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def results_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results folder of the test's own."""
    folder = tmp_path / "results"
    monkeypatch.setenv("PGDYNO_RESULTS", str(folder))
    return folder


@pytest.fixture
def image_dir(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for images of the test's own, in memory where there is /dev/shm."""
    folder = Path(tempfile.mkdtemp(prefix="i-", dir=_run_dirs[1]))
    monkeypatch.setenv("PGDYNO_IMAGE_DIR", str(folder))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def engine() -> Path:
    """The engine's binary."""
    reason = _missing_engine()
    if reason is not None:
        pytest.skip(reason)
    return _engine.checked()


@pytest.fixture(scope="session")
def system_postgres() -> Path:
    """The directory of programs of a PostgreSQL that a package brought; another than the embedded one."""
    reason = _missing_system_postgres()
    if reason is not None:
        pytest.skip(reason)
    system_postgres = find_system_postgres()
    assert system_postgres is not None
    return system_postgres


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Browser]:
    """One browser for all tests of a file, which are marked with ``needs_chromium``."""
    executable = chromium.find()
    assert executable is not None
    with chromium.Browser(executable) as running:
        yield running
