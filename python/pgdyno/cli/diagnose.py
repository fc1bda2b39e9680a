"""``pgdyno diagnose``: which limit binds on a server in use, whose requests fill it, and what to do."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.cli import parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..advise.diagnose.calendar import Calendar
    from ..advise.diagnose.diagnosis import Diagnosis
    from ..advise.diagnose.files import VolumeSource
    from ..advise.diagnose.remedies import Purchase

WATCH = "60s"
"""How long a server is watched by default."""


@click.command()
@click.argument("target", metavar="[DSN|RUN|DIR]", required=False)
@click.option("--for", "watch_for", metavar="TIME", help=f"How long to watch. [{WATCH}]")
@click.option(
    "--bought", multiple=True, metavar="[ROLE=]VOLUME",
    help="What was bought, by role: `data=gp3:iops=6000`, `wal=io2bx`; repeatable.",
)  # fmt: skip
@click.option("--instance", metavar="TYPE", help="Instance type of the server, for example r6g.2xlarge.")
@click.option("--keep", type=parameters.PathParameter(), metavar="DIR", help="Keep what was seen, as a results folder.")
@click.option(
    "--iostat", multiple=True, metavar="[ROLE=]FILE", help="Output of `iostat -dxt 1` at the server; repeatable."
)
@click.option("--sar", multiple=True, metavar="[ROLE=]FILE", help="Output of `sar -d` at the server; repeatable.")
@click.option(
    "--cloudwatch", multiple=True, metavar="[ROLE=]FILE",
    help="The volume's metrics, from `aws cloudwatch get-metric-data`; repeatable.",
)  # fmt: skip
@click.option(
    "--nvme", multiple=True, metavar="[ROLE=]FILE",
    help="Readings of `ebsnvme stats` at the server, two or more, in one file or several; repeatable.",
)  # fmt: skip
@click.option(
    "--device", multiple=True, metavar="[ROLE=]NAME",
    help="The device in a file that a role's volume is: `wal=nvme2n1`; repeatable.",
)  # fmt: skip
@click.option(
    "--statements", "texts", is_flag=True,
    help="Keep and show the texts of the statements that move most, not their queryid alone.",
)  # fmt: skip
@click.option("--every", metavar="TIME", help="Watch again and again, for example each `1h`; needs --keep.")
@click.option("--until", metavar="TIME", help="With --every: `08:00`, `2026-11-26T08:00` or `24h`. [until Ctrl-C]")
@click.option("--html", type=parameters.PathParameter(), metavar="FILE", help="Also write an HTML page.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def command(
    target: str | None,
    watch_for: str | None,
    bought: tuple[str, ...],
    instance: str | None,
    keep: Path | None,
    iostat: tuple[str, ...],
    sar: tuple[str, ...],
    cloudwatch: tuple[str, ...],
    nvme: tuple[str, ...],
    device: tuple[str, ...],
    texts: bool,
    every: str | None,
    until: str | None,
    html: Path | None,
    as_json: bool,
) -> None:
    """Find what limits a running PostgreSQL server, and the cheapest fix.

    DSN is a connection string without a password; a role with pg_monitor sees everything, and root is not needed. Nothing on
    the server is changed. RUN is the directory of a recorded run, or of a watch that --keep wrote, and is diagnosed in the same
    way. Files about the volumes can be given with either, or alone. DIR, where --keep wrote several watches, gives a calendar:
    the limit of each hour.

    \b
    Example:
      pgdyno diagnose service=app --bought data=gp3:iops=6000
      pgdyno diagnose "host=db.example dbname=app user=monitor" --for 5min
      pgdyno diagnose --iostat load.txt --device nvme1n1 --bought gp3
      pgdyno diagnose service=app --every 1h --until 24h --keep watches
      pgdyno diagnose watches --html calendar.html
    """
    from ..advise.diagnose.diagnosis import begin_s, diagnose, diagnose_files
    from ..advise.diagnose.remedies import Purchase

    named = {"--iostat": iostat, "--sar": sar, "--cloudwatch": cloudwatch, "--nvme": nvme}
    files = {flag: words for flag, words in named.items() if words}
    _refuse_device_without_file(device, files)
    if target is None or _is_directory(target):
        _refuse_options_of_a_watch(watch_for, keep, every, until, texts)
        purchase = _purchase(bought, instance)
        if target is not None:
            judged = _judged(Path(target), purchase, files, device)
            _show(judged, target, as_json, html)
            _refuse_unanswered(judged)
            return
        _require_files(files)
        _show(diagnose_files(_sources(files, device, None), purchase or Purchase()), None, as_json, html)
        return
    if every is not None or until is not None:
        _refuse_beside_every(html, as_json, files)
        _repeat(target, watch_for or WATCH, bought, instance, keep, every, until, texts=texts)
        return
    _refuse_metrics(cloudwatch)
    _require_readable(files)
    with _folder(keep) as root:
        path = _watched(target, watch_for or WATCH, bought, instance, root, texts=texts)
        with _kept(path) if files else contextlib.nullcontext():
            diagnosis = diagnose(path, None, _sources(files, device, begin_s(path)) if files else ())
        _show(diagnosis, None if keep is None else str(path), as_json, html)
    if keep is not None:
        click.echo(f"kept: {path}", err=True)
    _refuse_unanswered(diagnosis)


def _refuse_unanswered(diagnosis: Diagnosis | Calendar) -> None:
    """A server that did not answer was not measured: :class:`~pgdyno.base.errors.RunInvalid`, once all is shown and kept."""
    from ..advise.diagnose.calendar import Calendar
    from ..base.errors import RunInvalid

    if isinstance(diagnosis, Calendar) or diagnosis.silence is None or not diagnosis.silence.binds:
        return
    silence = diagnosis.silence
    raise RunInvalid(
        silence.title,
        remedy=silence.action,
        code="diagnose.server.no_answer",
        data={"unanswered_s": round(silence.seconds, 3), "of_s": round(silence.of_s, 3), "event": silence.event},
    )


def _judged(
    path: Path, purchase: Purchase | None, files: dict[str, tuple[str, ...]], device: tuple[str, ...]
) -> Diagnosis | Calendar:
    """A run or a watch; of a directory with several watches their calendar."""
    from ..advise.diagnose import calendar
    from ..advise.diagnose.diagnosis import begin_s, diagnose
    from ..base.errors import InputError

    if calendar.is_calendar(path):
        runs = calendar.runs_of(path)
        if len(runs) > 1 and files:
            raise InputError(
                f"{next(iter(files))} is for one watch, and {path} has {len(runs)}",
                remedy=f"name one of them, for example {runs[0].path}",
            )
        if len(runs) > 1:
            return calendar.calendar_of(path, purchase, tell=_tell_judged)
        path = runs[0].path
    return diagnose(path, purchase, _sources(files, device, begin_s(path)) if files else ())


def _repeat(
    target: str,
    watch_for: str,
    bought: tuple[str, ...],
    instance: str | None,
    keep: Path | None,
    every: str | None,
    until: str | None,
    *,
    texts: bool,
) -> None:
    """Watch at each instant of a schedule; a line for each watch."""
    import time
    from datetime import datetime

    from ..advise.diagnose import calendar as repeat
    from ..advise.diagnose import words
    from ..advise.diagnose.diagnosis import diagnose
    from ..base.errors import InputError
    from ..base.quantity import parse_seconds

    if every is None:
        raise InputError("--until is for watches that are repeated", remedy="add --every, for example --every 1h")
    if keep is None:
        raise InputError(
            "--every needs a directory for its watches", remedy="name one with --keep, for example --keep watches"
        )
    root = keep.absolute()
    schedule = repeat.schedule_of(every, until, parse_seconds(watch_for, "--for"), time.time())

    def once() -> None:
        diagnosis = diagnose(_watched(target, watch_for, bought, instance, root, texts=texts))
        click.echo(f"{datetime.now().astimezone():%a %H:%M}  {words.summary(diagnosis)}")

    made = repeat.repeated(schedule, once, root, _tell_next, lambda text: click.echo(text, err=True))
    click.echo(f"kept: {made:,} watches in {root}; `pgdyno diagnose {keep}` shows them by the hour", err=True)


def _refuse_beside_every(html: Path | None, as_json: bool, files: dict[str, tuple[str, ...]]) -> None:
    from ..base.errors import InputError

    given = [name for name, value in (("--html", html), ("--json", as_json), *files.items()) if value]
    if given:
        raise InputError(
            f"{given[0]} is for one answer, and --every gives one after the other",
            remedy="omit it, and name the directory of the watches, or one of them, afterwards: `pgdyno diagnose DIR`",
        )


def _is_directory(target: str) -> bool:
    """Whether it is a path: a connection string has a ``=`` or begins with ``postgres``."""
    from ..base.errors import InputError

    if Path(target).is_dir():
        return True
    if "=" in target or target.startswith(("postgres://", "postgresql://")):
        return False
    raise InputError(
        f"{target} is neither a run's directory nor a connection string",
        remedy='write a connection string as "host=db.example dbname=app user=monitor"; `pgdyno runs` lists the runs',
    )


def _purchase(bought: tuple[str, ...], instance: str | None) -> Purchase | None:
    """What is said to be bought; None where nothing is."""
    from ..advise.diagnose.remedies import purchase_of

    return purchase_of(bought, instance) if bought or instance is not None else None


def _sources(
    files: dict[str, tuple[str, ...]], device: tuple[str, ...], near_s: float | None
) -> tuple[VolumeSource, ...]:
    from ..advise.diagnose.files import sources_of

    return sources_of(files, device, near_s)


def _require_readable(files: dict[str, tuple[str, ...]]) -> None:
    from ..advise.diagnose.files import require_readable

    require_readable(files)


def _require_files(files: dict[str, tuple[str, ...]]) -> None:
    from ..base.errors import InputError

    if not files:
        raise InputError(
            "neither a server nor a file is named",
            remedy='name a server, `pgdyno diagnose "host=db.example dbname=app user=monitor"`, or a file: --iostat load.txt',
        )


def _refuse_device_without_file(device: tuple[str, ...], files: dict[str, tuple[str, ...]]) -> None:
    from ..base.errors import InputError

    if device and not files.keys() - {"--nvme"}:
        raise InputError(
            "--device is for --iostat, --sar and --cloudwatch", remedy="omit it: a server's own devices are found"
        )


@contextlib.contextmanager
def _kept(path: Path) -> Iterator[None]:
    """A file that is refused after a watch does not lose the watch."""
    from ..base.errors import InputError

    try:
        yield
    except InputError as error:
        kept = Path(tempfile.mkdtemp(prefix="pgdyno-diagnose-")) / path.parents[1].name
        shutil.copytree(path.parents[1], kept)
        raise InputError(
            error.message, remedy=f"{error.remedy}; the watch is kept: pgdyno diagnose {kept}, with the file"
        ) from error


def _refuse_metrics(cloudwatch: tuple[str, ...]) -> None:
    """CloudWatch has the minutes of a watch some minutes after it."""
    from ..base.errors import InputError

    if cloudwatch:
        raise InputError(
            "--cloudwatch is for a watch that was kept: metrics come some minutes late",
            remedy="watch with --keep DIR, ask for the metrics of that time, and name both",
        )


def _refuse_options_of_a_watch(*given: object) -> None:
    from ..base.errors import InputError

    names = ("--for", "--keep", "--every", "--until", "--statements")
    for name, value in zip(names, given, strict=True):
        if value:
            raise InputError(
                f"{name} is for a server that is watched", remedy="omit it: a record or a file says all that is known"
            )


def _watched(
    target: str, watch_for: str, bought: tuple[str, ...], instance: str | None, root: Path, *, texts: bool
) -> Path:
    """The directory of a run. What can be refused is refused before the watch."""
    from ..advise.diagnose.remedies import purchase_of
    from ..advise.diagnose.watch import check_seconds, target_of, watch
    from ..base.endpoint import refuse_secrets
    from ..base.quantity import parse_seconds

    refuse_secrets(target, "DSN", "diagnose")
    seconds = check_seconds(parse_seconds(watch_for, "--for"))
    purchase = purchase_of(bought, instance)
    tell = _tell if sys.stderr.isatty() else None
    return watch(target_of(target), purchase, seconds, root, tell, texts=texts)


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    """Where the run goes: kept, or gone afterwards."""
    if keep is not None:
        yield keep.absolute()
        return
    folder = Path(tempfile.mkdtemp(prefix="pgdyno-diagnose-"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _tell(left_s: float) -> None:
    """How long it still takes."""
    end = "\r" if left_s > 0.5 else "\n"
    click.echo(f"watching: {left_s:,.0f} s left  {end}", err=True, nl=False)


def _tell_judged(place: int, of: int) -> None:
    """How many watches are judged, on a terminal only."""
    if sys.stderr.isatty():
        click.echo(
            f"judging: {place + 1:,} of {of:,} watches  {chr(13) if place + 1 < of else chr(10)}", err=True, nl=False
        )


def _tell_next(unix_s: float) -> None:
    """When the next watch begins, on a terminal only."""
    from datetime import datetime

    if sys.stderr.isatty():
        at = datetime.fromtimestamp(unix_s).astimezone()
        click.echo(f"next watch at {at:%H:%M:%S}; Ctrl-C ends it, and what was seen is kept", err=True)


def _show(diagnosis: Diagnosis | Calendar, directory: str | None, as_json: bool, html: Path | None) -> None:
    from ..advise.diagnose.calendar import Calendar

    if html is not None:
        from ..advise.diagnose.page import write_page

        write_page(diagnosis, html)
    if as_json:
        # What writes documents takes half a second of CPU to import.
        from ..advise.diagnose.document import calendar_document, document

        text = calendar_document(diagnosis) if isinstance(diagnosis, Calendar) else document(diagnosis, directory)
        click.echo(text.model_dump_json(indent=2))
    else:
        from ..advise.diagnose import words

        width = shutil.get_terminal_size((words.WIDTH_MAX, 24)).columns
        lines = (
            words.calendar_lines(diagnosis, width) if isinstance(diagnosis, Calendar) else words.lines(diagnosis, width)
        )
        for line in lines:
            click.echo(line)
    if html is not None:
        click.echo(f"page: {html}", err=True)
