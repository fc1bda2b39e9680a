"""The way to the engine, tested with small programs in the engine's place and with the engine itself."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from pgdyno import _build
from pgdyno.base import engine as _engine
from pgdyno.base import installation
from pgdyno.base.errors import EngineError, EngineMissing, InputError


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of an engine, named by $PGDYNO_ENGINE; :func:`be` says what it does."""
    path = tmp_path / "engine"
    monkeypatch.setenv("PGDYNO_ENGINE", str(path))
    return path


def be(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_document_goes_in_and_the_answer_comes_out(fake: Path) -> None:
    be(fake, 'read -r line; printf \'{"args": "%s", "stdin": %s}\\n\' "$*" "$line"')
    answer = _engine.run_json(["volume", "spec"], {"name": "a\nb"})
    assert answer == {"args": "volume spec", "stdin": {"name": "a\nb"}}


def test_the_users_error_becomes_an_input_error(fake: Path) -> None:
    error = '{"message": "no such type", "remedy": "use gp3", "code": "volume.type.unknown", "data": {"type": "gp9"}}'
    be(fake, f"echo noise >&2; echo '{{\"error\": {error}}}' >&2; exit 2")
    with pytest.raises(InputError, match="no such type") as caught:
        _engine.run_json(["volume", "spec", "gp9"])
    assert (caught.value.remedy, caught.value.exit_code) == ("use gp3", 2)
    assert (caught.value.code, caught.value.data) == ("volume.type.unknown", {"type": "gp9"})


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo oh no >&2; exit 101", "ended with exit code 101: oh no"),
        ("kill -9 $$", "ended with signal 9: it said nothing"),
        ("echo hello", "not a JSON document: 'hello'"),
        ("echo '[1]'", "not a JSON document"),
        ("exec sleep 60", "gave no answer within 0.2 s"),
    ],
)
def test_anything_else_is_an_engine_error(fake: Path, script: str, said: str) -> None:
    be(fake, script)
    with pytest.raises(EngineError, match=said):
        _engine.run_json(["version"], timeout_s=0.2 if "sleep" in script else 30)


def test_lines_come_whatever_is_said_beside_them(fake: Path) -> None:
    """More than a pipe holds: the engine must not wait for somebody who reads it."""
    be(fake, "read -r line; head -c 300000 /dev/zero >&2; echo too bad >&2; exit 101")
    with pytest.raises(EngineError, match=r"(?s)ended with exit code 101: .*too bad"):
        list(_engine.lines(["generate"], {}))
    be(fake, "read -r line; head -c 300000 /dev/zero >&2; printf '{\"done\": 1}\\n'")
    assert list(_engine.lines(["generate"], {})) == [{"done": 1}]


def test_a_daemon_is_ready_after_its_first_line(fake: Path, tmp_path: Path) -> None:
    be(fake, 'read -r line; echo to the log >&2; printf \'{"ready": %s}\\n\' "$line"; echo later; cat >/dev/null')
    spawned = _engine.spawn(["probe"], {"interval_ms": 1000}, log=tmp_path / "log", keep_stdin=True)
    assert spawned.ready == {"interval_ms": 1000}
    assert spawned.process.poll() is None
    assert spawned.process.stdout is not None
    assert os.read(spawned.process.stdout.fileno(), 100) == b"later\n", "only the first line is taken from the pipe"
    spawned.close_stdin()
    assert spawned.process.wait(10) == 0
    assert (tmp_path / "log").read_text() == "to the log\n"


@pytest.mark.parametrize(
    ("script", "error", "said"),
    [
        ('echo \'{"error": {"message": "in use", "remedy": ""}}\'; sleep 60', InputError, "in use"),
        ("echo the reason >&2; exit 1", EngineError, "ended with exit code 1 before it was ready: the reason"),
        ("exec sleep 60", EngineError, "was not ready within 0.5 s: it said nothing"),
    ],
)
def test_a_daemon_that_is_not_ready_is_ended(
    fake: Path, tmp_path: Path, script: str, error: type[Exception], said: str
) -> None:
    be(fake, script.replace("sleep 60", "exec sleep 60") if "; sleep" in script else script)
    with pytest.raises(error, match=said):
        _engine.spawn(["volume", "serve"], {}, log=tmp_path / "log", timeout_s=0.5)


def test_a_named_engine_that_is_not_there_is_said(fake: Path) -> None:
    with pytest.raises(EngineMissing, match="PGDYNO_ENGINE names") as caught:
        _engine.find()
    assert "unset PGDYNO_ENGINE" in caught.value.remedy


def test_an_engine_beside_the_interpreter_must_be_of_the_same_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGDYNO_ENGINE", raising=False)
    monkeypatch.setattr(installation.sysconfig, "get_path", lambda name, scheme="": str(tmp_path))
    monkeypatch.setattr(_build, "PACKAGE", Path(__file__).parents[2] / "python" / "pgdyno")  # a clone's
    with pytest.raises(EngineMissing, match="none of these is a program"):
        _engine.checked()
    be(tmp_path / _engine.BINARY, 'echo \'{"version": "0.1.0", "build_hash": "0123456789abcdef"}\'')
    with pytest.raises(EngineMissing, match="was built from other sources") as caught:
        _engine.run_json(["volume", "types"])
    assert caught.value.remedy == "run `make setup`"


def test_both_languages_compute_the_same_build_hash(engine: Path) -> None:
    # `make test` builds the engine first, so it must match; this is what notices when the two rules part.
    if os.environ.get("PGDYNO_ENGINE"):
        pytest.skip("$PGDYNO_ENGINE names an engine that may be of other sources")
    assert _engine.facts().build_hash == _build.expected_build_hash()


def test_the_build_hash_sees_content_and_names_and_nothing_else(tmp_path: Path, repository: Path) -> None:
    for name in _build.source_files(repository):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(repository / name, tmp_path / name)
    first = _build.hash_sources(tmp_path)
    (tmp_path / "crates/engine/tests").mkdir(exist_ok=True)
    (tmp_path / "crates/engine/tests/new.rs").touch()
    (tmp_path / "crates/volume/clippy.toml").touch()
    assert _build.hash_sources(tmp_path) == first
    lock = tmp_path / "Cargo.lock"
    lock.write_bytes(lock.read_bytes() + b"\n")
    second = _build.hash_sources(tmp_path)
    lib = tmp_path / "crates/engine/src/main.rs"
    lib.rename(lib.with_name("moved.rs"))
    assert len({first, second, _build.hash_sources(tmp_path)}) == 3
