"""The section on PostgreSQL: its sessions' waits, its counters, its I/O; and the section on the machine's CPU time."""

from __future__ import annotations

from functools import partial

from pgdyno.analysis.arm import ArmSummary
from pgdyno.analysis.compare import Comparison
from pgdyno.report import figures
from pgdyno.report.section import Drawing, Heading, Matrix, Note, Part, Section, listed, many

from ..base.text import UNKNOWN, count, number, percent
from .section import FigureRow

EVENTS_MAX = 10
"""Events in the table, the most frequent of all arms; the rest is in the run directories."""
TYPES = ("CPU", "IO", "LWLock", "Lock", "Buffer", "IPC", "Client", "Timeout", "other")
"""Types of wait in the order of the figure's bars; ``waitN`` of the theme is the colour of the Nth."""
_RENAMED = {"BufferPin": "Buffer"}
"""A type's name before PostgreSQL 19, and its name since."""


def wait_rows(comparison: Comparison) -> list[FigureRow]:
    """Mean sessions by event, the most frequent first."""
    looked = [arm for arm in comparison.arms if arm.waits]
    names = dict.fromkeys(wait for arm in looked for wait in arm.waits)
    ordered = sorted(names, key=lambda wait: -max(arm.waits.get(wait, 0.0) for arm in looked))
    return [
        FigureRow(wait.label, tuple(_cell(arm.waits.get(wait)) if arm.waits else UNKNOWN for arm in comparison.arms))
        for wait in ordered[:EVENTS_MAX]
    ]


def waits_by_type(arm: ArmSummary) -> dict[str, float]:
    """Mean sessions by type of wait, in the order of :data:`TYPES`; a type that is none of them is ``other``."""
    type_ = dict.fromkeys(TYPES, 0.0)
    for wait, sessions in arm.waits.items():
        kind = _RENAMED.get(wait.type, wait.type)
        type_[kind if kind in type_ else "other"] += sessions
    return type_


def wait_types(comparison: Comparison) -> list[tuple[int, str]]:
    """(place, type) of the types that any session was seen in."""
    sums = [waits_by_type(arm) for arm in comparison.arms]
    return [(place, kind) for place, kind in enumerate(TYPES) if any(values[kind] > 0 for values in sums)]


def _cell(sessions: float | None) -> str:
    if not sessions:
        return "0"
    return "< 0.01" if sessions < 0.01 else number(sessions, 2 if sessions < 1 else 3)


_SERVER = (
    ("buffer_hit_share", "found in shared buffers"),
    ("read_mib_per_s", "read into shared buffers, MiB/s"),
    ("temp_mib_per_s", "temporary files written, MiB/s"),
    ("wal_mib_per_s", "WAL, MiB/s"),
    ("wal_bytes_per_transaction", "WAL of a transaction, bytes"),
    ("wal_full_pages_per_s", "full pages in WAL, per second"),
    ("wal_syncs_per_s", "WAL syncs, per second"),
    ("wal_buffers_full_per_s", "WAL buffers full, per second"),
    ("checkpoints", "checkpoints begun"),
    ("checkpoints_requested", "of these, because max_wal_size was reached"),
    ("checkpoint_write_mib_per_s", "written by checkpoints, MiB/s"),
    ("deadlocks", "deadlocks"),
)
"""Figures of the server in the order and the words of the page."""
IO_SHARE_MIN = 0.01
"""A kind of process is shown when it moved this share of an arm's bytes; pg_stat_io has dozens that move nothing."""


def server_section(comparison: Comparison) -> Section:
    """Waits, counters, and bytes by who moved them; what was not seen is omitted."""

    def folded(rows: list[FigureRow], fold: str) -> Matrix:
        return Matrix(tuple(rows), fold if many(comparison) else "")

    parts: list[Part] = []
    if listed(comparison) and any(arm.waits for arm in comparison.arms):
        drawing = Drawing(
            "waits",
            "What sessions waited for",
            "Mean number of the clients' sessions by the type of wait that pg_stat_activity showed, ten times a second. CPU: active"
            " and waiting for nothing that PostgreSQL knows of. Client: waiting for the driver.",
            partial(figures.waits, comparison.arms),
            title="What its sessions were doing",
            key=tuple((f"wait{place}", kind) for place, kind in wait_types(comparison)),
        )
        parts += [drawing, folded(wait_rows(comparison), "By event")]
    if counted := server_rows(comparison):
        parts += [Heading("Counters"), folded(counted, "Counters of each arm")]
    if moved := io_rows(comparison):
        note = Note(
            "pg_stat_io: read / written, MiB/s, between PostgreSQL and the operating system; the page cache lies between this and"
            " the volume."
        )
        parts += [Heading("Bytes by process"), folded(moved, "pg_stat_io of each arm"), note]
    return Section("server", "PostgreSQL", tuple(parts))


def server_rows(comparison: Comparison) -> list[FigureRow]:
    """PostgreSQL's own counters, where any arm has them."""
    arms = comparison.arms
    rows = []
    for name, title in _SERVER:
        values = [arm.server.get(name) for arm in arms]
        if any(value is not None and (value or name.startswith("checkpoints")) for value in values):
            shown = percent if name.endswith("_share") else number if "_per_" in name else count
            rows.append(FigureRow(title.replace("a transaction", f"a {arms[0].unit.one}"), tuple(map(shown, values))))
    return rows


def io_rows(comparison: Comparison) -> list[FigureRow]:
    """Bytes by who moved them, from pg_stat_io: a cell is ``read / written`` in MiB/s."""
    arms = comparison.arms
    read = [arm.io_mib_per_s(lambda rate: rate.read_mib_per_s) for arm in arms]
    written = [arm.io_mib_per_s(lambda rate: rate.write_mib_per_s) for arm in arms]
    names = dict.fromkeys(name for each in read for name in each)
    total = [sum(r.values()) + sum(w.values()) for r, w in zip(read, written, strict=True)]
    rows = []
    for name in names:
        moved = [r.get(name, 0.0) + w.get(name, 0.0) for r, w in zip(read, written, strict=True)]
        if any(item > IO_SHARE_MIN * whole for item, whole in zip(moved, total, strict=True)):
            cells = (f"{number(r.get(name, 0.0))} / {number(w.get(name, 0.0))}" if r or w else UNKNOWN
                     for r, w in zip(read, written, strict=True))  # fmt: skip
            rows.append(FigureRow(f"{name[0]}: {name[1]}", tuple(cells)))
    return rows


def cpu_section(comparison: Comparison) -> Section | None:
    """A bar for each arm."""
    arms = comparison.arms
    if not listed(comparison) or not any(arm.cpu_share for arm in arms):
        return None
    drawing = Drawing(
        "cpu",
        "CPU time by role",
        "Means of the replicates. Driver, relay, volume daemon and probe are the test harness: they would not run beside a real"
        " volume.",
        partial(figures.cpu, arms),
        key=tuple((f"role{place}", name) for place, name in figures.roles(arms)),
    )
    return Section("cpu", "CPU", (drawing,))
