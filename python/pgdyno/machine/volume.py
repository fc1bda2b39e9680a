"""Emulated volumes: attach, find, read their counters, detach.

An attached volume is a daemon (``pgdyno-engine volume serve``), its directory ``volumes/NAME`` in the state directory
with a FUSE mount inside, a loop device on the file in that mount, and, when asked for, a file system on that device. The
directory ``claims/NAME`` is made first: it takes the name, and holds what a clean-up has to know.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from ..base import catalog, engine, installation
from ..base.errors import EngineError, HostError, InputError, Interrupted, PgdynoError
from ..base.specification import VolumeSpec
from . import mounts, paths, preflight
from .file_system import FILE_SYSTEMS, FileSystem, require_mount_options
from .instance_type import require_limits
from .journal import HostJournal
from .mount_options import require_known_options
from .named import find_named
from .process import ProcessIdentity, boot_id, identity
from .remove import FACTS_FILE, LOG_FILE, PANIC_FILE, exists, remove_volume, serves_others, write_claim
from .snapshot_delete import collect
from .unfinished import UnfinishedVolume, unfinished
from .waiting import wait_until

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,31}")
ATTACH_TIMEOUT_S = 120.0
FORMAT_TIMEOUT_S_PER_TIB = 3.0
"""More than mkfs.ext4 took on a busy machine of two cores."""
WRITE_LOG_BYTES = 1 << 30
"""Memory of a write log at most."""
Cache = Literal["none", "volatile"]
WORK_TIMEOUT_S = 120.0
"""A detach and a modification write, and may take this long in the volume's own time; the engine gives up a little sooner."""
_ROOM_BYTES = 256 << 20
"""An empty file system and a small cluster fit in this; below it an attach is refused."""
_DEAD = "volume.daemon.dead"
"""The code of what is asked of a volume whose daemon has ended, or is ending."""


@dataclass
class AttachedVolume:
    """A volume that is served now. ``facts`` is what the engine said when it was ready, as it said it."""

    name: str
    state_dir: Path
    facts: dict[str, Any]
    daemon: ProcessIdentity
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)
    _entry: str | None = field(default=None, repr=False)

    @property
    def spec(self) -> dict[str, Any]:
        """The resolved specification: type, size, limits, price."""
        return dict(self.facts["spec"])

    @property
    def mount(self) -> Path | None:
        """Where its file system is mounted; ``None`` for a bare block device."""
        return Path(self.facts["mount"]) if self.facts.get("mount") else None

    @property
    def block_device(self) -> str:
        """The device, as ``/dev/loop3``."""
        return str(self.facts["block_device"])

    @property
    def alive(self) -> bool:
        """Whether its daemon runs. Without it every request to the device fails."""
        return self.daemon.alive()

    def stats(self) -> dict[str, Any]:
        """Counters and histograms since attach, as the engine gives them (``t_ns`` is CLOCK_MONOTONIC).

        ``seen_ns`` is the same instant as :meth:`minutes` has it: of a dilated volume on the clock of its users.
        """
        return self._ask("stats")

    def minutes(self) -> dict[str, Any]:
        """The counters at each full minute of the last day, the oldest first, with the anchor of their clock."""
        return self._ask("minutes")

    def _ask(self, question: str) -> dict[str, Any]:
        self._require_daemon()
        try:
            return engine.run_json(["volume", question, self.name, "--state-dir", str(self.state_dir)])
        except PgdynoError:
            # A killed daemon closes its socket: say that it is dead, not that it is silent.
            wait_until(self.daemon.ending, 2.0)
            self._require_daemon()
            raise

    def modify(self, spec: str, *, rule: str = "2026", optimizing_s: int | None = None) -> dict[str, Any]:
        """Make it the volume ``spec`` while it is used: other figures, another type, a larger size.

        What is not written in ``spec`` is that type's default. ``rule`` is the year of the rule on how often this may be;
        ``optimizing_s`` how long the modification takes to be completed, by default from the volume's size. Returns the
        new specification and the modification's state; :class:`InputError` names the rule that forbids it.
        """
        self._require_daemon()
        chosen = [] if optimizing_s is None else ["--optimizing", str(optimizing_s)]
        command = ["volume", "modify", self.name, spec, "--rule", rule, *chosen, "--state-dir", str(self.state_dir)]
        answer = engine.run_json(command, timeout_s=self._work_timeout_s)
        self.facts["spec"] = answer["spec"]
        return answer

    def fail(self, fault: dict[str, Any]) -> dict[str, Any]:
        """Inject a fault, as the engine takes it (``crates/emulate/src/fault.rs``). Returns all faults of the volume.

        :class:`InputError` where the provider injects no such fault, or the volume has no such member or range.
        """
        return self._tell("fail", json.dumps(fault))

    def heal(self) -> dict[str, Any]:
        """End all faults but a loss. Returns those that are left."""
        return self._tell("heal")

    def mark(self, text: str) -> dict[str, Any]:
        """Note ``text`` in the volume's write log. Returns how much the log holds, and whether it is ``full`` and has ended."""
        return dict(self._tell("mark", text)["write_log"])

    def tell_pending(self, seconds: float) -> None:
        """Say that a snapshot of it is pending for this number of seconds of its own time: a type with credits does its baseline meanwhile."""
        self._tell("pending", str(round(seconds * 1e9)))

    def _tell(self, order: str, *what: str) -> dict[str, Any]:
        self._require_daemon()
        return engine.run_json(["volume", order, self.name, *what, "--state-dir", str(self.state_dir)])

    @property
    def log_path(self) -> Path:
        """What its daemon wrote; it lasts as long as the volume."""
        return paths.claims_dir(self.state_dir) / self.name / LOG_FILE

    @property
    def panic(self) -> str | None:
        """The reason for which its daemon has ended itself; ``None`` while it serves, and where it was killed."""
        try:
            return (paths.volumes_dir(self.state_dir) / self.name / PANIC_FILE).read_text(errors="replace").strip()
        except OSError:
            return None

    def keep(self) -> None:
        """Let the volume outlive this command: from now on it goes only by :meth:`detach`."""
        if self._entry is not None:
            HostJournal(self.state_dir).done(self._entry)
            self._entry = None

    @property
    def _work_timeout_s(self) -> float:
        return WORK_TIMEOUT_S * int(self.facts.get("dilation") or 1)

    def detach(self, save_image: Path | None = None) -> dict[str, Any]:
        """Unmount, take the device away, end the daemon; ``save_image`` keeps the content as an image first.

        Returns what the daemon said, empty of one that is dead: ``write_log_full`` is the path of a write log that has ended at its
        limit. A :class:`HostError` with the code ``volume.log.incomplete`` comes after the volume is gone: a log of it is cut off.

        A volume whose daemon is dead is removed too, unless its content was to be saved. :class:`HostError` when the daemon
        does not answer. :class:`Interrupted` says whether an interrupted detach left the volume attached.
        """
        if save_image is not None:
            self._require_daemon()
        answer: dict[str, Any] = {}
        incomplete: PgdynoError | None = None
        if self.alive:
            try:
                answer = self._ask_to_detach(save_image)
            except PgdynoError as error:
                if error.code != "volume.log.incomplete":
                    raise
                incomplete = error
        self._remove()
        if incomplete is not None:
            raise incomplete
        return answer

    def _ask_to_detach(self, save_image: Path | None) -> dict[str, Any]:
        save = ["--save-image", str(save_image)] if save_image is not None else []
        command = ["volume", "detach", self.name, "--state-dir", str(self.state_dir), *save]
        try:
            self._ask("health")  # an unmount may take minutes, and a daemon that hangs is known in seconds
            answer: dict[str, Any] = engine.run_json(command, timeout_s=self._work_timeout_s).get("ok") or {}
        except PgdynoError as error:
            # Another command's detach, or a kill, may be at its end: the volume is not found any more, its daemon still ends. What
            # a daemon that lives said, which has a code, is passed on.
            refused = error.code not in ("", _DEAD)
            if not wait_until(lambda: not self.alive, 5.0) or save_image is not None or refused:
                raise
            answer = {}
        except KeyboardInterrupt:
            # The daemon drops an order whose sender is gone, unless it has begun.
            if not wait_until(lambda: not self.alive, 2.0):
                raise Interrupted(
                    f"interrupted: volume `{self.name}` is still attached, with its content; an unmount that had begun"
                    " continues",
                    remedy="`pgdyno volume list` shows whether it is there",
                ) from None
            if save_image is None:
                self._remove()
            raise Interrupted(
                f"interrupted, but volume `{self.name}` was detached already",
                remedy="" if save_image is None else f"its content is in {save_image} if that directory exists",
            ) from None
        wait_until(lambda: not self.alive or self._shares(), 5.0)
        return answer

    def _shares(self) -> bool:
        """Whether its daemon serves other volumes too."""
        return serves_others(self.state_dir, self.name, self.daemon)

    def _remove(self) -> None:
        """Make sure that nothing of it is left, whatever the daemon did."""
        remove_volume(self.state_dir, self.name)
        self._reap()
        if exists(self.state_dir, self.name):
            how = mounts.how_to_free([self.block_device], self.mount)
            how = how or f"end the programs that use {self.mount or self.block_device}"
            raise HostError(
                f"volume `{self.name}` could not be removed completely: it is still in use",
                remedy=f"{how}, then run `pgdyno doctor --clean`",
            )
        self.keep()
        with contextlib.suppress(PgdynoError):  # what stays is among the leftovers
            collect(self.state_dir, merge=False, patience_s=0.0)

    def _reap(self) -> None:
        if self._process is not None:
            try:
                self._process.wait(5.0)
            except subprocess.TimeoutExpired:
                return
            for pipe in (self._process.stdin, self._process.stdout):
                if pipe is not None:
                    pipe.close()

    def _require_daemon(self) -> None:
        if self.daemon.ending():
            reason = self.panic
            raise HostError(
                f"the daemon of volume `{self.name}` (process {self.daemon.pid}) is dead, and its content with it"
                + (f"; it ended itself, because of a bug: {reason}" if reason else ""),
                remedy=f"run `pgdyno volume detach {self.name}` to remove what is left of it",
                code=_DEAD,
                data={"volume": self.name, "pid": self.daemon.pid, "panic": reason},
            )


def attach(
    spec: str | VolumeSpec,
    *,
    mount: Path | None,
    name: str | None = None,
    image: Path | None = None,
    store: str = "memory",
    submit_log: Path | None = None,
    write_log: Path | None = None,
    write_log_limit_bytes: int = WRITE_LOG_BYTES,
    cache: Cache = "none",
    seed: int | None = None,
    state_dir: Path | None = None,
    file_system: FileSystem | None = None,
    mount_options: str = "",
    instance: str | None = None,
    instance_type: str | None = None,
    dilation: int = 1,
    calibrate: bool = True,
) -> AttachedVolume:
    """Attach an emulated volume and wait until it can be used.

    ``mount`` is an empty or new directory, or ``None`` for a bare block device. The volume belongs to this process
    (a killed command's volume is cleaned up) until :meth:`AttachedVolume.keep`. ``image`` starts from the content
    of a saved volume. ``store`` is ``memory`` or a directory. ``write_log`` is the file that gets every write and flush of the
    instance's volumes when the last of them is detached; in memory it takes up to ``write_log_limit_bytes``. With a
    ``volatile`` ``cache`` the device says that an answered write is durable only after a flush. ``file_system`` is ext4 by default, or the image's own;
    ``mount_options`` are those of mount(8). ``instance`` names the instance that it joins, or begins if it is the
    first: one daemon serves its volumes, one ``seed`` is theirs (0 unless the first says another), and they share the limits
    of ``instance_type`` (``r6g.2xlarge``; ``None``: what the instance has, or no limit). With ``dilation`` 8 a second of the volume takes eight;
    its counters are in its own time. Calibrating takes a second or two; without it answers are late by the path, some tenths of a millisecond,
    which matters only where time is looked at. Raises before anything changed when the specification is illegal or the machine
    lacks something.
    """
    state = (state_dir or paths.state_dir()).resolve()
    mount = None if mount is None else preflight.resolved(mount)
    require_mount_options(mount_options)
    known = spec if isinstance(spec, VolumeSpec) else catalog.resolve(spec)
    _require(mount, store, image, file_system)
    if mount is not None and image is None:  # an image brings its file system
        require_known_options(file_system or FILE_SYSTEMS[0], mount_options)
    if instance_type is not None:
        require_limits(instance_type)
    for given, what in ((name, "a volume"), (instance, "an instance")):
        if given is not None and not NAME.fullmatch(given):
            raise InputError(
                f"`{given}` cannot be the name of {what}",
                remedy="use up to 32 lower-case letters, digits, `-` and `_`; begin with a letter or a digit",
            )
    journal = HostJournal(state)
    name, entry = _claim(state, journal, name, known.spec)
    request: dict[str, Any] = {
        "name": name,
        "spec": known.spec,
        "mount": _text(mount),
        "state_dir": str(state),
        "image": _text(image),
        "store": store if store == "memory" else str(Path(store).resolve()),
        "submit_log": _text(submit_log),
        "write_log": _text(write_log),
        "write_log_limit_bytes": write_log_limit_bytes,
        "cache": cache,
        "seed": seed,
        "file_system": file_system,
        "mount_options": mount_options,
        "instance": instance,
        "instance_type": instance_type,
        "dilation": dilation,
        "calibrate": calibrate,
    }
    try:
        return _serve(state, name, entry, mount, request, known.size_bytes)
    except BaseException as error:
        if isinstance(error, EngineError):
            error.remedy = f"read {_keep_log(state, name)}"
        remove_volume(state, name)
        if not exists(state, name):
            journal.done(entry)
        raise


@contextmanager
def attached(spec: str | VolumeSpec, **options: Any) -> Iterator[AttachedVolume]:
    """:func:`attach` for the length of a ``with`` block."""
    volume = attach(spec, **options)
    try:
        yield volume
    finally:
        volume.detach()


def states(state_dir: Path | None = None) -> dict[str, dict[str, Any]]:
    """What the daemons of the volumes do, by name: ``state`` is ``serving``, ``stopped`` (by a signal), ``silent`` (no answer
    in time) or ``dead``; ``store_failure`` says since when the store fails, and why; ``faults`` are those injected into it, ``initialized_ppm`` says how much
    it has of the snapshot that it was made from, and is None where that was there from the start. ``status`` is AWS's.
    """
    state = (state_dir or paths.state_dir()).resolve()
    listed = engine.run_json(["volume", "list", "--state-dir", str(state)])["volumes"]
    known = ("state", "store_failure", "faults", "initialized_ppm")
    return {
        str(item["name"]): {key: item[key] for key in known} | {"status": _status(item["faults"])} for item in listed
    }


def _status(faults: Sequence[Mapping[str, Any]] | None) -> Literal["ok", "impaired", "insufficient-data"]:
    if faults is None:  # it does not answer
        return "insufficient-data"
    stopped = any(fault["kind"] in ("pause", "lose") and fault["begins_in_s"] == 0 for fault in faults)
    return "impaired" if stopped else "ok"


def list_volumes(state_dir: Path | None = None) -> list[AttachedVolume]:
    """The volumes of the state directory by name, those with a dead daemon too; they are their owner's to see."""
    state = (state_dir or paths.state_dir()).resolve()
    if paths.volumes_dir(state).is_dir() and not os.access(
        paths.volumes_dir(state), os.R_OK | os.X_OK, effective_ids=True
    ):
        raise HostError(
            f"the volumes in {state} belong to another user, who alone can see them",
            remedy=installation.how_to_run_as_root(),
        )
    volumes = []
    for file in sorted(paths.volumes_dir(state).glob(f"*/{FACTS_FILE}")):
        try:
            facts = json.loads(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue  # being detached, or being written
        daemon = ProcessIdentity(int(facts["pid"]), int(facts["pid_start_ticks"]), boot_id())
        volumes.append(AttachedVolume(file.parent.name, state, facts, daemon))
    return volumes


def find(name: str, state_dir: Path | None = None) -> AttachedVolume:
    """The volume called ``name``. :class:`InputError` when there is none."""
    none = "attach one with `pgdyno volume attach SPEC --mount DIR`"
    return find_named(name, list_volumes(state_dir), "volume", "attached are", none)


def find_any(name: str, state_dir: Path | None = None) -> AttachedVolume | UnfinishedVolume:
    """The volume called ``name``, or what an interrupted attach left of it. :class:`InputError` when there is neither."""
    for volume in unfinished((state_dir or paths.state_dir()).resolve()):
        if volume.name == name:
            return volume
    return find(name, state_dir)


def _require(mount: Path | None, store: str, image: Path | None, file_system: FileSystem | None) -> None:
    if mount is not None:
        preflight.require_mount_point(mount)
    if image is not None and not image.is_dir():
        raise InputError(f"there is no image at {image}", remedy="name the directory of a saved volume")
    if store != "memory" and not Path(store).is_dir():
        raise InputError(f"the store `{store}` is not a directory", remedy="use --store memory, or name a directory")
    preflight.require_root("attaching a volume")
    preflight.require_fuse()
    preflight.require_mounts()
    preflight.require_loop()
    preflight.require_programs(f"mkfs.{file_system or FILE_SYSTEMS[0]}", "mount", "umount", "losetup")
    if store == "memory":
        preflight.require_memory(_ROOM_BYTES, "a volume in memory")
    else:
        preflight.require_space(Path(store), _ROOM_BYTES, "the volume's store")


def _claim(state: Path, journal: HostJournal, name: str | None, spec: str) -> tuple[str, str]:
    """Make the directory that makes a name ours; a name is found when none is given."""
    paths.make_state_dir(state)
    paths.claims_dir(state).mkdir(exist_ok=True)
    kind = re.sub(r"[^a-z0-9].*", "", spec) or "volume"
    candidates = [name] if name is not None else [f"{kind}-{number}" for number in range(1, 1000)]
    for candidate in candidates:
        if exists(state, candidate):
            continue
        entry = journal.record("volume", name=candidate)
        try:
            (paths.claims_dir(state) / candidate).mkdir()
        except FileExistsError:
            journal.done(entry)
            continue
        # From here on a dead command's entry of this name would let a clean-up take our volume away.
        journal.forget_abandoned("volume", candidate)
        return candidate, entry
    interrupted = any(volume.name == candidates[0] and volume.owner is None for volume in unfinished(state))
    raise InputError(
        f"an attach of a volume called `{candidates[0]}` was interrupted"
        if interrupted
        else f"a volume called `{candidates[0]}` already exists",
        remedy=f"choose another name, or run `pgdyno volume detach {candidates[0]}` first",
    )


def _keep_log(state: Path, name: str) -> Path:
    """Keep the log of a daemon that failed, which is removed with everything else of it; only the last one is kept."""
    kept = state / "failed-attach.log"
    with contextlib.suppress(OSError):
        shutil.copyfile(paths.claims_dir(state) / name / LOG_FILE, kept)
    return kept


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _serve(
    state: Path, name: str, entry: str, mount: Path | None, request: dict[str, Any], size_bytes: int
) -> AttachedVolume:
    missing = [] if mount is None else preflight.missing_directories(mount)
    write_claim(state, name, request["store"], missing)
    if mount is not None:
        preflight.make_mount_point(mount)
    log = paths.claims_dir(state) / name / LOG_FILE
    # Relative to where this command runs, which the daemon leaves.
    env = os.environ | {"PGDYNO_IMAGE_DIR": str(paths.image_dir())}
    patience_s = ATTACH_TIMEOUT_S + FORMAT_TIMEOUT_S_PER_TIB * size_bytes / 2**40
    started = engine.spawn(["volume", "serve"], request, log=log, new_session=True, timeout_s=patience_s, env=env)
    daemon = identity(int(started.ready["pid"]))
    if daemon is None:
        raise EngineError(f"the daemon of volume `{name}` ended right after it was ready", remedy=f"read {log}")
    return AttachedVolume(name, state, started.ready, daemon, started.process, entry)
