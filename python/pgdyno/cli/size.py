"""``pgdyno size``: the cheapest volumes and instances for a measured load."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgdyno.cli import parameters
from pgdyno.cli.terminal import columns

from ..base.errors import InputError
from .parameters import hosts_of

if TYPE_CHECKING:
    from ..advise.size.advice import Advice
    from ..advise.size.fleet import File, Terms
    from ..advise.size.measured import DeviceSamples
    from ..hosts.examine import SpreadOptions

WATCH_S = 60.0
"""How long ``--live`` watches by default."""
_FILE = click.Path(path_type=Path, allow_dash=True)


@click.command()
@click.option(
    "--iostat", type=_FILE, metavar="FILE", help="Output of `iostat -dxt 1`, as text or JSON; `'*.txt'` for many files."
)
@click.option("--sar", type=_FILE, metavar="FILE", help="Output of `sar -d`, `sadf -j -- -d` or `sadf -d -- -d`.")
@click.option(
    "--cloudwatch", type=_FILE, metavar="FILE",
    help="Output of `aws cloudwatch get-metric-data`, the console's CSV, or of `az monitor metrics list`.",
)  # fmt: skip
@click.option("--live", metavar="DEVICE", help="Watch this block device now; needs no root.")
@click.option("--for", "watch_for", metavar="TIME", help="With --live: how long to watch. [60s]")
@click.option("--device", multiple=True, metavar="NAME", help="Device in the file; repeatable, several are added up.")
@click.option("--interval", metavar="TIME", help="Length of an interval, if the file does not say it.")
@click.option(
    "--first-report",
    type=click.Choice(["keep", "drop"]),
    help="Whether iostat's first report counts; with `iostat -y` it does. [kept if it shows the most]",
)
@click.option(
    "--size", "sizes", multiple=True, metavar="[FILE=]SIZE",
    help="Required capacity, for example 500GiB; of many files also of one: `'db7*=2TiB'`. [that of the watched device]",
)  # fmt: skip
@click.option(
    "--bought", metavar="VOLUME", shell_complete=parameters.volume_types,
    help="The volume that was measured, `gp2:size=250GiB`: says whether it was at its limit.",
)  # fmt: skip
@click.option("--headroom", default="20%", show_default=True, metavar="PERCENT", help="Margin above the percentile.")
@click.option(
    "--percentile",
    type=parameters.Number(50, 100),
    default=99,
    show_default=True,
    help="Percentile of the load that must be carried.",
)
@click.option("--instance", metavar="TYPE", help="Present instance type, for example r6g.2xlarge.")
@click.option(
    "--type", "among", multiple=True, metavar="PATTERN", shell_complete=parameters.volume_types,
    help="Only these volume types: `gp3`, `rds-*`; repeatable. [AWS's types]",
)  # fmt: skip
@click.option(
    "--arrays",
    type=parameters.Integer(1, 8),
    default=8,
    show_default=True,
    help="Maximum number of volumes in a RAID-0; 1 means no array.",
)
@click.option("--spread", metavar="tls://HOST:PORT", help="Let the hosts of this scheduler answer for many files.")
@click.option(
    "--keys",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --spread: directory with authority.crt, coordinator.crt and coordinator.key.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE", help="Also write an HTML page.")
def command(
    iostat: Path | None,
    sar: Path | None,
    cloudwatch: Path | None,
    live: str | None,
    watch_for: str | None,
    device: tuple[str, ...],
    interval: str | None,
    first_report: str | None,
    sizes: tuple[str, ...],
    bought: str | None,
    headroom: str,
    percentile: float,
    instance: str | None,
    among: tuple[str, ...],
    arrays: int,
    spread: str | None,
    keys: Path | None,
    as_json: bool,
    html: Path | None,
) -> None:
    """Find the cheapest volumes and instances for a measured load.

    Limits must be at least the load's 99th percentile plus 20 %; credits must not run out when the load is repeated endlessly.

    A quoted pattern in place of a file stands for many: there is an answer for each, and a total.

    \b
    Example:
      pgdyno size --iostat load.txt --device nvme1n1 --size 500GiB --instance r6g.2xlarge
      pgdyno size --cloudwatch answer.json --size 1TiB --headroom 30% --html size.html
      pgdyno size --iostat load.txt --bought gp3:size=250GiB,iops=8000
      pgdyno size --iostat 'hosts/*.txt' --type gp3 --size 500GiB --size 'db7*=2TiB'
    """
    from ..advise.size.fleet import Terms
    from ..base.quantity import parse_seconds

    interval_s = None if interval is None else _interval_s(interval)
    size_bytes, sizes_bytes = _sizes(sizes)
    terms = Terms(percentile, _share(headroom), size_bytes, instance, among, arrays, bought, sizes_bytes)
    watch_s = None if watch_for is None else parse_seconds(watch_for, "--for")
    keep_first = None if first_report is None else first_report == "keep"
    files = {"--iostat": iostat, "--sar": sar, "--cloudwatch": cloudwatch}
    measured = _measured(files, live, watch_s, device, interval_s, keep_first)
    where = hosts_of(spread, keys)
    if isinstance(measured, list):
        if html is not None:
            raise InputError(
                "--html is for one file",
                remedy=f"write a page for each, `pgdyno size {_flag(files)} {measured[0].name} --size ... --html"
                f" {Path(measured[0].name).stem}.html`; --json has all of them",
                code="size.fleet.html",
            )
        _show_many(measured, terms, where, as_json)
        return
    if where is not None:
        raise InputError("--spread is for many files", remedy="omit it, or give a pattern: --iostat 'hosts/*.txt'")
    name = next((str(path) for path in files.values() if path is not None), "")
    _show(terms.advice(measured, name), as_json, html)


def _flag(files: dict[str, Path | None]) -> str:
    """The option that names the files."""
    return next(flag for flag, path in files.items() if path is not None)


def _sizes(texts: tuple[str, ...]) -> tuple[int | None, tuple[tuple[str, int], ...]]:
    """The size of all, and those of some by the pattern of their name. :class:`InputError` where one is none."""
    from ..base.quantity import parse_bytes

    common, own = None, []
    for text in texts:
        pattern, equals, size = text.rpartition("=")
        size_bytes = parse_bytes(size, "--size")
        if equals:
            own.append((pattern, size_bytes))
        elif common is not None:
            raise InputError(
                "--size is given twice",
                remedy="give it once; of many files one may have its own: --size 'db7*=2TiB'",
                code="size.size.twice",
            )
        else:
            common = size_bytes
    return common, tuple(own)


def _interval_s(text: str) -> float:
    """The length in seconds; :class:`InputError` if it is not a time above 0."""
    from ..base.quantity import parse_seconds

    seconds = parse_seconds(text, "--interval")
    if seconds <= 0:
        raise InputError("--interval must be greater than 0", remedy="give the length of an interval: 1s")
    return seconds


def _measured(
    files: dict[str, Path | None],
    live: str | None,
    watch_s: float | None,
    device: tuple[str, ...],
    interval_s: float | None,
    keep_first: bool | None,
) -> DeviceSamples | list[File]:
    """The named load, or the files of a pattern; :class:`InputError` if there is none, or more than one."""
    from pgdyno.loader.source import matching

    from ..advise.size.fleet import File
    from ..advise.size.reading import counters

    named = {flag: path for flag, path in files.items() if path is not None}
    if len(named) + (live is not None) != 1:
        raise InputError(
            "name one measured load" + (", not several" if named or live else ""),
            remedy="use --iostat FILE, --sar FILE, --cloudwatch FILE or --live DEVICE",
        )
    if keep_first is not None and "--iostat" not in named:
        raise InputError("--first-report is for --iostat", remedy="omit it: no other source has an average since boot")
    if live is not None:
        if device:
            raise InputError("--device is for files", remedy="--live names its device itself")
        if interval_s is not None:
            raise InputError("--interval is for files", remedy="--live samples once a second; --for says how long")
        return counters.watch(live, WATCH_S if watch_s is None else watch_s, tell=_tell)
    if watch_s is not None:
        raise InputError("--for is for --live", remedy="omit it: a file has its own duration")
    flag, path = next(iter(named.items()))
    fleet = matching(str(path))
    results = [
        File(flag, "standard input" if str(item) == "-" else str(item), _text(item), device, interval_s, keep_first)
        for item in fleet or [path]
    ]
    return results if fleet else results[0].read()


def _text(path: Path) -> str:
    """The text of a file or of standard input; invalid UTF-8 is replaced, a byte order mark is removed."""
    from pgdyno.loader.source import standard_input

    try:
        content = standard_input().buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise InputError(
            f"{path} cannot be read: {error.strerror or error}", remedy="name a file that you may read"
        ) from error
    # Readers split lines themselves, at any end.
    return content.decode("utf-8", errors="replace").removeprefix("\ufeff")


def _tell(left_s: float) -> None:
    """How long it still takes, on a terminal only."""
    if sys.stderr.isatty():
        end = "\r" if left_s > 1 else "\n"
        click.echo(f"watching: {left_s:,.0f} s left  {end}", err=True, nl=False)


def _share(text: str) -> float:
    """``20%`` or ``20``: 0.2. :class:`InputError` if it is neither, or negative."""
    try:
        percent = float(text.removesuffix("%"))
    except ValueError:
        percent = -1.0
    if not 0 <= percent <= 1000:
        raise InputError(f"--headroom: `{text}` is not a percentage from 0 % to 1000 %", remedy="write it as 20%")
    return percent / 100


def _show_many(files: list[File], terms: Terms, where: SpreadOptions | None, as_json: bool) -> None:
    """An answer for each file, and the total. :class:`InputError` at the end where a file was wrong."""
    from ..advise.size import fleet
    from .terminal import print_json

    fleet.require_sizes(files, terms)
    questions = [fleet.FileRequest(file, terms) for file in files]
    if where is None:
        answers = [fleet.answer(question) for question in questions]
    else:
        from pgdyno.hosts.connection import Connection

        with Connection(where) as connection:
            answers = connection.each(fleet.answer, questions)
    if as_json:
        print_json(fleet.total(answers))
    else:
        click.echo(fleet.text(answers, columns()))
    wrong = [answer for answer in answers if answer.error]
    if wrong:
        raise InputError(
            f"{len(wrong)} of {len(answers)} files could not be answered; {wrong[0].name}: {wrong[0].error}",
            remedy=wrong[0].remedy,
            code="size.fleet.files",
            data={"files": [item.name for item in wrong]},
        )


def _show(advice: Advice, as_json: bool, html: Path | None) -> None:
    from ..advise.size import presentation

    if html is not None:
        from ..advise.size.presentation import write_page

        write_page(advice, html)
    if as_json:
        import json

        click.echo(json.dumps(presentation.document(advice), indent=1))
        return
    click.echo(presentation.text(advice, columns()))
    if html is not None:
        click.echo(f"page: {html}", err=True)
