"""``pgdyno crashtest``: cut the power of a server many times, and look what is left."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from pgdyno.cli import parameters

from .parameters import PathParameter
from .terminal import print_json, print_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..durability.crash.campaign import CampaignResult
    from ..durability.crash.recording import Kind, Recording, RecordingOptions
    from ..machine.volume import Cache


_ON_OFF = click.Choice(["on", "off"])
_SHOWN = 5
"""Failures that are printed; all are in the JSON document and in the recording's cuts.json."""


@click.command()
@click.argument("file", metavar="EXPERIMENT.toml", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--cuts",
    type=parameters.Integer(min=1),
    default=100,
    show_default=True,
    help="Contents to examine, one in ten from a cut during the recovery from another one.",
)
@click.option(
    "--seconds", type=parameters.Number(min=1), default=10, show_default=True, help="Length of the recording."
)
@click.option(
    "--seed", type=parameters.Integer(min=0, max=2**32), default=1, show_default=True, help="Seed of the cuts."
)
@click.option(
    "--volume", default="gp3", show_default=True, metavar="SPEC", help="Volume that the server is recorded on."
)
@click.option(
    "--file-system",
    type=click.Choice(["ext4", "ext4-bigalloc", "xfs"]),
    default="ext4",
    show_default=True,
    help="File system.",
)
@click.option(
    "--cache", type=click.Choice(["none", "volatile"]), default="none", show_default=True, help="Write cache."
)
@click.option("--wal-apart", is_flag=True, help="Put WAL on a volume of its own.")
@click.option(
    "--reading",
    default="pieces-4096",
    show_default=True,
    metavar="READING",
    help="What may be left of a write: whole, prefix-N or pieces-N, with +strict or +units.",
)
@click.option("--fsync", type=_ON_OFF, default="on", show_default=True, help="PostgreSQL's fsync.")
@click.option(
    "--full-page-writes", type=_ON_OFF, default="on", show_default=True, help="PostgreSQL's full_page_writes."
)
@click.option(
    "--synchronous-commit", type=_ON_OFF, default="on", show_default=True, help="PostgreSQL's synchronous_commit."
)
@click.option("--setting", "settings", multiple=True, metavar="NAME=VALUE", help="Another setting of the server.")
@click.option("--pg-bin", type=PathParameter(), help="Directory of PostgreSQL's programs [the embedded ones].")
@click.option("--recording", type=PathParameter(), help="Cut in this recording again, instead of making one.")
@click.option("--recovery-of", metavar="ID", help="Record the recovery from this cut, and cut in that.")
@click.option("--results", type=click.Path(file_okay=False, path_type=Path), help="Results folder [./results].")
@click.option("--replay", metavar="ID", help="Make and examine the cut that an earlier crashtest printed.")
@click.option("--shrink", is_flag=True, help="With --replay: find the fewest lost writes that still fail.")
@click.option("--keep", type=PathParameter(), help="With --replay: leave its content in this new directory, mounted.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    /,
    file: Path | None,
    replay: str | None,
    shrink: bool,
    keep: Path | None,
    as_json: bool,
    **options: Any,
) -> None:
    """Simulate power failures and check what survives.

    A server is recorded while it commits numbered transactions; each acknowledgement is noted outside. Then the recording
    is cut at many instants. What was not durable is lost, whole or torn. Each content is mounted, recovered and examined:
    the file system, the server, every acknowledged commit, indexes, checksums. A failure ends with exit code 6.

    An experiment file with the table [crash] says what is cut instead of options: the server of each of its arms. Nothing of it is
    measured; `pgdyno run` does both.

    \b
    Example:
      sudo pgdyno crashtest --cuts 200
      sudo pgdyno crashtest experiments/power-cuts.toml
      sudo pgdyno crashtest --cuts 1000 --full-page-writes off --reading pieces-4096
      sudo pgdyno crashtest --replay results/20261124T120000Z-crashtest-1a2b3c:pieces-4096:1:17 --shrink
    """
    from ..base.errors import InputError

    if file is not None:
        require_alone(ctx)
        cut_and_print(file, options["results"], as_json, _print)
        return
    if replay is not None:
        _replay(replay, shrink, keep, as_json)
        return
    if shrink or keep is not None:
        raise InputError("--shrink and --keep are of one cut", remedy="name it with --replay ID")
    _test(options, as_json)


def _test(options: dict[str, Any], as_json: bool) -> None:
    from ..base.errors import CutFailed
    from ..durability.crash import campaign, recovery
    from .terminal import Bar

    campaign.require_ready()  # before a recording is made, whose cuts could not be examined
    with Bar() as bar:
        recording = _recording(options, bar)
        cuts = int(options["cuts"])

        def tell(result: CampaignResult) -> None:
            failed = f", {len(result.failed)} failed" if result.failed else ""
            bar.show(result.tried / cuts, f"cut the power: {result.tried} of {cuts}{failed}")

        result = recovery.cut(recording, options["reading"], int(options["seed"]), cuts, tell=tell)
    campaign.keep(result)
    if as_json:
        print_json(result.to_json())
    else:
        _print(result)
    if result.failed:
        raise CutFailed(
            result.verdict,
            remedy=f"`pgdyno crashtest --replay {result.failed[0].cut.name} --shrink` says what was lost",
        )


def _recording(options: dict[str, Any], bar: Any) -> Recording:
    from ..durability.crash import recording

    if options["recovery_of"] is not None:
        return _recovery(options, bar)
    if options["recording"] is not None:
        return recording.load(options["recording"])
    recording_options = _asked(options)
    bar.show(0.0, f"record PostgreSQL on {recording_options.volume}: {recording_options.seconds:g} s")
    return recording.record(recording_options, recording.new_folder(recording_options, options["results"]))


def _recovery(options: dict[str, Any], bar: Any) -> Recording:
    from contextlib import closing

    from ..base.errors import InputError
    from ..durability.crash.book import Name, open_named
    from ..durability.crash.recording import new_folder
    from ..durability.crash.recovery import record_recovery

    if options["recording"] is not None:
        raise InputError("--recovery-of names its recording itself", remedy="leave --recording out")
    name = Name.parse(options["recovery_of"])
    bar.show(0.0, "record the recovery")
    with closing(open_named(name)) as book:
        return record_recovery(book, name, new_folder(book.recording.asked, options["results"]))


def _asked(options: dict[str, Any]) -> RecordingOptions:
    from ..base.errors import InputError
    from ..durability.crash.recording import RecordingOptions

    settings = {}
    for text in options["settings"]:
        name, equals, value = str(text).partition("=")
        if not (name and equals):
            raise InputError(f"--setting: `{text}` is not a setting", remedy="write it as NAME=VALUE")
        settings[name.strip()] = value.strip()
    refused = {name: str(options[name]) for name in ("fsync", "full_page_writes", "synchronous_commit")}
    kind: Kind = options["file_system"]
    cache: Cache = options["cache"]
    return RecordingOptions(
        volume=options["volume"],
        file_system=kind,
        cache=cache,
        wal_apart=options["wal_apart"],
        seconds=options["seconds"],
        settings=settings,
        given_up={name: value for name, value in refused.items() if value == "off"},
        pg_bin=None if options["pg_bin"] is None else str(options["pg_bin"].absolute()),
    )


def _print(result: CampaignResult) -> None:
    options = result.recording.asked
    given_up = "".join(f", {name} {value}" for name, value in options.given_up.items())
    click.echo(
        f"PostgreSQL {result.recording.postgres} on {options.volume}, {options.file_system}, cache {options.cache}"
        f"{', WAL apart' if options.wal_apart else ''}{given_up}; read as {result.reading}"
    )
    click.echo(result.verdict)
    if result.in_recovery:
        click.echo(f"{result.in_recovery} of them during the recovery from another one")
    pages = result.audit
    if pages["pages"]:
        click.echo(
            f"of {pages['pages']:,} pages of 8 KiB that the server wrote, {pages['whole_in_small']:,} reached the device whole in"
            f" an aligned request of 8 or 16 KiB, {pages['whole_in_unit']:,} inside an aligned 16 KiB of a larger one,"
            f" {pages['across_units']:,} across such units, {pages['across_requests']:,} in two requests"
        )
    cuts = max(1, result.tried)
    print_rows(["STEP", "MS A CUT"], [[step, f"{1000 * total / cuts:.0f}"] for step, total in result.seconds.items()])
    rate = f", {60 * result.tried / result.wall_s:,.0f} a minute" if result.wall_s else ""
    click.echo(
        f"{result.cpu_s / cuts:.2f} s of CPU a cut{rate}; {result.repeated:,} contents were the same as one before"
    )
    from ..durability.crash import known

    for outcome in result.failed[:_SHOWN]:
        for check, failure in outcome.failures.items():
            click.echo(f"{outcome.cut.name}  {check}: {failure}")
        if (defect := known.defect(outcome.failures)) is not None:
            click.echo(f"{outcome.cut.name}  {defect.explained}")
    click.echo(f"recording: {result.recording.folder}", err=True)


def _replay(text: str, shrink: bool, keep: Path | None, as_json: bool) -> None:
    from contextlib import closing

    from ..base.errors import CutFailed, InputError
    from ..durability.crash import campaign
    from ..durability.crash import shrink as shrinking
    from ..durability.crash.book import Name, open_named
    from ..durability.crash.examine import Examiner

    name = Name.parse(text)
    if keep is None:
        campaign.require_ready()
    with closing(open_named(name)) as book, campaign.workplace() as folder:
        if keep is not None:
            for line in campaign.leave(book, name, keep):
                click.echo(line)
            return
        examiner = Examiner(book, folder / "replay")
        outcome = examiner.try_cut(name.reading, name.seed, name.number, again=True)
        if outcome is None:
            raise InputError(f"{text} names no cut: its instant has fewer contents", remedy="name one that was printed")
        document: dict[str, Any] = outcome.to_json()
        if shrink and outcome.failures:
            shrunk = shrinking.shrink(examiner, name, outcome, lambda left: print(f"{left} left", file=sys.stderr))
            outcome = shrunk.outcome
            book.cut(name.reading, name.seed, name.number, examiner.files, again=True, whole=shrunk.whole)
            whose = shrinking.owners(examiner.files, folder, outcome.cut.harmed)
            document = outcome.to_json()
            document["shrunk"] = [
                document | {"owner": whose.get(document["request"])} for document in outcome.cut.harmed
            ]
    if as_json:
        print_json(document)
    else:
        _print_outcome(document)
    if outcome.failures:
        raise CutFailed(f"the cut {text} left damage", remedy="`--shrink` finds the fewest lost writes that still fail")


def _print_outcome(document: dict[str, Any]) -> None:
    from ..durability.crash import known

    click.echo(
        f"{document['id']}: {document['stratum']}, position {document['position']}, {document['undecided']} undecided writes,"
        f" {document['harmed']} of them lost or torn"
    )
    for check, failure in document["failures"].items():
        click.echo(f"{check}: {failure}")
    if (defect := known.defect(document["failures"])) is not None:
        click.echo(defect.explained)
    if not document["failures"]:
        click.echo("nothing is missing or damaged")
    for item in document.get("shrunk", []):
        kept = item["kept"] or "lost"
        click.echo(f"volume {item['volume']}, byte {item['offset']:,}, {item['len']:,} bytes: {kept}; {item['owner']}")


BESIDE = ("file", "results", "as_json")
"""What may be given with a file; it says the rest itself."""


def require_alone(ctx: click.Context) -> None:
    """Refuse options beside a file that says the same."""
    from ..base.errors import InputError

    for parameter in ctx.command.params:
        name = str(parameter.name)
        if name not in BESIDE and ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE:
            raise InputError(
                f"{parameter.opts[-1]}: the experiment file says what is cut",
                remedy="write it in the file, or omit the file",
            )


def cut_arms(
    file: Path, results: Path | None, show: Callable[[float, str], None]
) -> Iterator[tuple[str, CampaignResult]]:
    """Record and cut each arm of an experiment file; its label with what came of it, for each reading."""
    from pgdyno.experiment import read_experiment
    from pgdyno.world import emulated
    from pgdyno.world.resolved import emulated_arms

    from ..base.errors import InputError
    from ..durability.crash import campaign, recording, recovery

    experiment = read_experiment(file)
    table = experiment.file.crash
    if not table.cuts:
        raise InputError(f"{file} asks for no power cuts", remedy="add the table [crash] with cuts = 200")
    arms = emulated_arms(experiment, to_run=False)
    campaign.require_ready()
    for resolved in arms:
        label = resolved.arm.label
        answer = emulated.asked_of(resolved)
        show(0.0, f"{label}: record PostgreSQL for {answer.seconds:g} s")
        recorded = recording.record(answer, recording.new_folder(answer, results))
        for reading in table.reading:

            def tell(result: CampaignResult, what: str = f"{label}, {reading}") -> None:
                failed = f", {len(result.failed)} failed" if result.failed else ""
                show(result.tried / table.cuts, f"{what}: {result.tried} of {table.cuts}{failed}")

            result = recovery.cut(recorded, reading, experiment.seed % emulated.SEED_MAX, table.cuts, tell=tell)
            campaign.keep(result)
            yield label, result


def cut_and_print(file: Path, results: Path | None, as_json: bool, print_one: Callable[[Any], None]) -> None:
    """Cut the arms of a file and print what came of it. :class:`CutFailed` where one did not survive a cut."""
    from ..base.errors import CutFailed
    from .terminal import Bar, print_json

    with Bar() as bar:
        answer = list(cut_arms(file, results, bar.show))
    if as_json:
        print_json({"schema_version": 1, "arms": [{"arm": label, **result.to_json()} for label, result in answer]})
    else:
        for label, result in answer:
            click.echo(label)
            print_one(result)
    for label, result in answer:
        if result.failed:
            raise CutFailed(
                f"{label}: {result.verdict}",
                remedy=f"`pgdyno crashtest --replay {result.failed[0].cut.name} --shrink` says what was lost",
            )
