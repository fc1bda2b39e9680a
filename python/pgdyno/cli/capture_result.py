"""Captures on a terminal."""

from __future__ import annotations

import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from ..base.quantity import duration_words
from .terminal import print_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pgdyno.capture.plan import CapturePlan
    from pgdyno.capture.replay import ReplayResult

    from ..results.work_record import LikenessRecord

RELAYED = "relayed"
"""The form of a capture that `capture record` made, as the engine's account names it."""
_SHAPE_LETTERS = 100
_ERRORS_SHOWN = 10
_BARS = "▁▂▃▄▅▆▇█"
_MANY = 20
"""Statements of which one would read, or be short, where all are logged."""
_SHORT_US = 10_000
"""A server whose shortest statement takes longer logs the slow ones alone: BEGIN takes microseconds."""
_CLOCK_TOLD_S = 3600.0
"""Statements ask for rows of the last hours or days; of a copy that is replayed on at once nothing is said."""
_LACKS = {
    "without_values": (
        "statements without their values, which cannot be sent again",
        "set log_parameter_max_length = -1, and log_parameter_max_length_on_error = -1 for those that failed",
    ),
    "binary": ("statements with values in binary of types that are not known here, which are among them", ""),
    "cut": ("statements whose text or values are cut, or end in `...` as a cut value does", ""),
    "without_ending": ("statements without a duration or an error", "set log_duration = on"),
    "errors_without_statement": ("errors without their statement", "set log_min_error_statement = error"),
    "not_followed": ("executions of the fast path or of SQL's PREPARE, which a relay does not follow", ""),
    "passwords": ("statements that set or name a password, which are left out", ""),
    "cut_entries": (
        "statements of which a line is not UTF-8, not whole or missing, which are left out",
        "copy the log again; convert one in another encoding with iconv",
    ),
    "torn": ("records that are not whole", ""),
    "too_long": ("records of more than 64 MiB, which are left out", ""),
    "implausible": ("numbers that cannot be", ""),
    "not_text": ("records that are not text in UTF-8", "convert the log with iconv"),
    "missing": ("lines that are missing by their numbers", ""),
    "repeated": ("lines whose numbers were read before, with something else in them, which are left out", ""),
    "duplicates": ("entries that the logs have twice, which are in the capture once", ""),
    "begun_before": ("sessions that began before the log", ""),
    "not_ended": ("sessions whose end is not in the capture", "set log_disconnections = on"),
    "time_went_back": ("times at which the clock went back", ""),
    "time_went_ahead": ("times at which nothing was logged for more than half an hour, or the clock was set ahead", ""),
}
"""What can be lacking, in the order in which it is printed, with the setting of the log that helps."""


_TERSE = "set log_error_verbosity = default, as terse leaves values out, and log_parameter_max_length = -1"
_BY = {
    "given": "as --log-timezone says",
    "received": "by the time in UTC at which entries were received",
    "session": "by when sessions began",
    "season": "by the other name of the year there, which the log has too",
}
"""By what the offset of a zone's name is known."""


def _is_terse_possible(account: Mapping[str, Any]) -> bool:
    """Whether the form of the logs depends on ``log_error_verbosity``: csvlog and jsonlog have DETAIL whatever it is."""
    return all("log_line_prefix" in form for _, form in account["files"])


def _zone_words(name: str, taken: Mapping[str, Any]) -> str:
    """What the name of a zone was taken for."""
    if taken["by"] not in _BY:
        if not name:
            return "the times have no zone: they count as UTC, and may be wrong by hours"
        return f"the zone {name} may be that of several places: times count as UTC, and may be wrong by hours; give --log-timezone"
    hours, minutes = divmod(abs(taken["offset_s"]) // 60, 60)
    sign = "-" if taken["offset_s"] < 0 else "+"
    return f"{name or 'a time without a zone'} is {sign}{hours:02}:{minutes:02}, {_BY[taken['by']]}"


def print_account(account: Mapping[str, Any]) -> None:
    """What was read, and what of it cannot be used."""
    for name, form in account["files"]:
        click.echo(f"{name}: {form}")
    click.echo(
        f"{account['entries']:,} entries, {account['bytes'] / 1e6:,.1f} MB: {account['calls']:,} statements in the capture"
    )
    for line in lacking(account):
        click.echo(line)


def lacking(account: Mapping[str, Any]) -> Iterator[str]:
    """What is missing, one line each."""
    if not account["fractions"]:
        yield "times have whole seconds: statements within one are spread in their order (`%m` or csvlog has milliseconds)"
    if account["calls"] >= _MANY and account["changing"] == account["calls"]:
        yield "every statement changes something: set log_statement = all, as mod leaves out what reads"
    if account["calls"] >= _MANY and (account["least_us"] or 0) >= _SHORT_US:
        least = f"{account['least_us'] / 1e3:,.0f} ms"
        yield f"no statement took less than {least}: set log_min_duration_statement = 0, as others leave out the shorter ones"
    if account.get("unfinished"):
        yield "the recording was killed: it is incomplete, and what came in its last seconds is not in it"
    for reason, sessions in account["not_followed_sessions"].items():
        yield f"{sessions:,} sessions are incomplete from somewhere on: {reason}"
    of_log = all(form != RELAYED for _, form in account["files"])
    if account.get("sorted"):
        yield "the logs had another order: the entries were sorted by their times (logs that overlap must be of one server)"
    for key, (what, setting) in _LACKS.items():
        if account.get(key):
            if key == "without_values" and account.get("details") == 0 and _is_terse_possible(account):
                setting = _TERSE
            yield f"{account[key]:,} {what}" + (f": {setting}" if setting and of_log else "")
    for language, messages in account.get("other_languages", {}).items():
        yield f"{messages:,} messages about statements in another language ({language}), which are left out: set lc_messages = C"
    for name, taken in account.get("zones", {}).items():
        yield _zone_words(name, taken)
    if account.get("time_went_ahead"):
        yield f"the longest time without an entry is {duration_words(account['longest_gap_us'] / 1e6)}"
    if account["first_unreadable"] is not None:
        name, place = account["first_unreadable"]
        yield f"the first record that cannot be read is at line {place:,} of {name}"
    if account["first_implausible"] is not None:
        name, place, what = account["first_implausible"]
        yield f"the first number that cannot be is the {what} at line {place:,} of {name}"


def print_losses(document: Mapping[str, Any]) -> None:
    """A capture that is not its source's load."""
    from pgdyno.analysis import reading

    from ..results.work_record import ReadingRecord

    for loss in reading.losses(ReadingRecord(**document)):
        click.echo(f"warning: {loss}: a replay is not valid without --accept-losses", err=True)


def print_plan(plan: CapturePlan, dsn: str) -> None:
    """What to do for a capture, in order."""
    from ..base.endpoint import public_dsn

    where = public_dsn(dsn)
    for note in plan.notes:
        click.echo(f"note: {note}", err=True)
    if plan.log_bytes_per_s is not None and plan.cpus is not None and plan.statements_per_s is not None:
        least, most = plan.cpus
        click.echo(
            f"estimate: {plan.statements_per_s:,.0f} statements/s, a log of {plan.log_bytes_per_s * 3600 / 1e9:,.2f} GB an hour,"
            f" {least:.2f} to {most:.2f} cores for logging"
        )
    click.echo()
    click.echo("1. Keep what the server has counted, and let it log:")
    click.echo(f"     pgdyno capture stats '{where}' > before.json")
    _print_changes(
        plan, [change.apply for change in plan.changes], [(change.name, change.wanted) for change in plan.changes]
    )
    click.echo("2. While it logs, dump the database; a capture is compared with it from the dump's snapshot on:")
    click.echo(
        f"     pg_dump -Fc -d '{where}' -f shop.dump; pg_dumpall -d '{where}' --globals-only --no-role-passwords -f globals.sql"
    )
    click.echo("3. When the time that you want is over, keep the counters again, and undo:")
    click.echo(f"     pgdyno capture stats '{where}' > after.json")
    _print_changes(
        plan,
        [change.undo for change in plan.changes],
        [(change.name, change.before.value) for change in plan.changes if not change.before.hidden],
    )
    click.echo("4. Read the log:")
    prefix = "" if plan.prefix is None else f" --prefix '{plan.prefix}'"
    click.echo(f"     pgdyno capture read LOG...{prefix} --output shop.capture")
    click.echo("5. Replay it on volumes:")
    files = "--restore shop.dump --globals globals.sql --capture shop.capture --stats before.json after.json"
    click.echo(f"     pgdyno compare gp3 io2bx {files}")


def _print_changes(plan: CapturePlan, statements: Sequence[str], values: Sequence[tuple[str, str]]) -> None:
    if not plan.changes:
        click.echo("     (every setting is as a capture needs it)")
    elif plan.service == "rds":
        click.echo("     aws rds modify-db-parameter-group --db-parameter-group-name GROUP --parameters \\")
        for place, (name, value) in enumerate(values, 1):
            more = " \\" if place < len(values) else ""
            quoted = shlex.quote(f"ParameterName={name},ParameterValue={value},ApplyMethod=immediate")
            click.echo(f"       {quoted}{more}")
    else:
        for statement in statements:
            click.echo(f"     {statement}")
        click.echo("     SELECT pg_reload_conf();")


def print_capture(path: str, document: Mapping[str, Any], limit: int) -> None:
    """A capture: what it is of, its statements, its load, its errors, and what is missing."""
    seconds = (document["last_us"] - document["first_us"]) / 1e6
    begin = datetime.fromtimestamp(document["first_us"] / 1e6, UTC)
    click.echo(f"{path}: {seconds:,.1f} s from {begin:%Y-%m-%d %H:%M:%S} by the log's clock")
    click.echo(
        f"{document['calls']:,} statements in {document['transactions']:,} transactions of {document['sessions']:,} sessions,"
        f" at most {document['sessions_at_once']:,} at a time"
    )
    for what in ("users", "databases", "protocols", "errors"):
        if document[what]:
            counts = ", ".join(f"{name or '(not logged)'} {count:,}" for name, count in document[what].items())
            click.echo(f"{what}: {counts}")
    click.echo()
    _print_statements(document["statements"], limit)
    click.echo()
    load = document["calls_by_part"]
    click.echo(f"statements in each {load['part_s']} s, at most {max(load['calls']):,}: {_bars(load['calls'])}")
    for line in lacking(document["account"]):
        click.echo(line)
    print_losses(document["reading"])
    if document["exposed"]:
        click.echo(f"warning: others than its owner may read it: chmod 600 {path}", err=True)


def print_session(document: Mapping[str, Any]) -> None:
    """The statements of a session, in milliseconds since it began."""
    session = document["session"]
    who = f"{session['user'] or '(not logged)'} in {session['database'] or '(not logged)'}"
    click.echo(f"{who}, from {session['host'] or '(not logged)'} as {session['application'] or '(no name)'}")
    rows = []
    for call in document["calls"]:
        took = call["error"] or ("" if call["us"] is None else f"{call['us'] / 1e3:,.2f}")
        at = f"{(call['due_us'] - session['begin_us']) / 1e3:,.1f}"
        rows.append([at, str(call["transaction"]), call["protocol"], took, _short(call["shape"])])
    print_rows(["AT MS", "TRANSACTION", "PROTOCOL", "MS", "STATEMENT"], rows, right=["AT MS", "TRANSACTION", "MS"])
    for call in document["calls"]:
        _print_values(call)


def _print_values(example: Mapping[str, Any]) -> None:
    if "text" in example:
        click.echo(f"\n{example['text']}")
        for number, value in enumerate(example["values"], 1):
            click.echo(f"  ${number} = {'NULL' if value is None else value!r}")


def _short(shape: str) -> str:
    return shape if len(shape) <= _SHAPE_LETTERS else shape[: _SHAPE_LETTERS - 1] + "…"


def print_replay(replay: ReplayResult) -> None:
    """What came of the statements, how late they were, and how long they took beside production."""
    summary = replay.summary
    account = {
        "executed": summary["executed"],
        "failed as recorded": summary["failed_as_recorded"],
        "newly failed": summary["newly_failed"],
        "failed in production alone": summary["no_longer_failed"],
        **{f"left out: {why}": count for why, count in summary["left_out"].items()},
        "not begun": summary["not_begun"],
    }
    share = {name: f"{count / max(1, summary['statements']):.2%}" for name, count in account.items()}
    print_rows(
        ["STATEMENTS", "NUMBER", "SHARE"],
        [[name, f"{count:,}", share[name]] for name, count in account.items()],
        right=["NUMBER", "SHARE"],
    )
    click.echo()
    click.echo(
        f"{summary['captured_s']:,.1f} captured seconds took {summary['took_s']:,.1f} s, in {summary['lanes']:,} places for sessions"
    )
    behind, late = summary["behind_us"], summary["late_us"]
    click.echo(
        f"statements were sent {behind['p50'] / 1e3:,.1f} ms (median), {behind['p99'] / 1e3:,.1f} ms (99 %),"
        f" at most {behind['max'] / 1e3:,.0f} ms after their time; the driver's own part: {late['p99'] / 1e3:,.2f} ms (99 %)"
    )
    here, there = summary["service_us"], summary["recorded_service_us"]
    if here["count"]:
        click.echo(
            f"a statement took {here['mean'] / 1e3:,.3f} ms here, {there['mean'] / 1e3:,.3f} ms in production (mean);"
            f" {here['p99'] / 1e3:,.2f} and {there['p99'] / 1e3:,.2f} ms (99 %)"
        )
    for remark in replay.remarks():
        click.echo(remark)
    if summary["copies_made"]:
        click.echo(f"rows of {summary['copies_made']:,} COPYs were made by the statistics of their columns")
    if (keys := summary["keys"]) is not None:
        _print_keys(keys)
    if abs(replay.clock_ahead_s) > _CLOCK_TOLD_S:
        where = "after" if replay.clock_ahead_s > 0 else "before"
        click.echo(
            f"the server's clock is {duration_words(abs(replay.clock_ahead_s))} {where} the capture's: statements with now() may find other rows"
        )
    if replay.likeness is not None:
        _print_likeness(replay.likeness)
    errors = sorted(summary["errors"], key=lambda error: -error["count"])
    if errors:
        click.echo()
        rows = [
            [f"{error['count']:,}", error["sqlstate"], _short(error["statement"])] for error in errors[:_ERRORS_SHOWN]
        ]
        print_rows(["NEWLY FAILED", "SQLSTATE", "STATEMENT"], rows, right=["NEWLY FAILED"])


def _print_keys(keys: Mapping[str, Any]) -> None:
    """Where keys were exchanged, where they may have been, and what waiting for them cost."""
    total = keys["exchanged"] + keys["not_known"] + keys["doubtful"]
    click.echo(
        f"this run's keys were sent at {keys['exchanged']:,} of {total:,} places of {keys['learned']:,} keys of the capture"
    )
    if keys["not_known"]:
        click.echo(f"at {keys['not_known']:,} this run had not made the key: sent as captured")
    if keys["doubtful"]:
        click.echo(f"at {keys['doubtful']:,} nothing proves whether it is a key: sent as captured")
        places = keys["doubtful_places"][:_ERRORS_SHOWN]
        rows = [[f"{place['count']:,}", place["place"], _short(place["statement"]), place["why"]] for place in places]
        print_rows(["TIMES", "PLACE", "STATEMENT", "WHY"], rows, right=["TIMES"])
    if keys["waited"]:
        vain = f"; {keys['given_up']:,} in vain, as long as --wait-max allows" if keys["given_up"] else ""
        click.echo(
            f"{keys['waited']:,} statements waited for the transaction that makes their key,"
            f" {keys['waited_us'] / 1e6:,.1f} s together{vain}"
        )


def _print_likeness(record: LikenessRecord) -> None:
    """How many statements did production's work, and which did other work."""
    from ..analysis.replay import unlike

    beyond = unlike(record)
    click.echo(
        f"{len(record.statements) - len(beyond):,} of {len(record.statements):,} statements did the work that they did in production"
    )
    if beyond:
        click.echo()
        rows = [
            [
                f"{unlike.calls:,}",
                ", ".join(f"{ratio:.2f} x {name}" for name, ratio in unlike.ratios.items()),
                _short(unlike.statement),
            ]
            for unlike in beyond[:_ERRORS_SHOWN]
        ]
        print_rows(["CALLS", "HERE", "OTHER WORK THAN IN PRODUCTION"], rows, right=["CALLS"])


def _print_statements(statements: Sequence[Mapping[str, Any]], limit: int) -> None:
    rows = []
    total_us = sum(statement["total_us"] for statement in statements) or 1
    for statement in statements[:limit]:
        mean = f"{statement['total_us'] / statement['timed'] / 1e3:,.2f}" if statement["timed"] else ""
        calls, failed, share = (
            f"{statement['calls']:,}",
            f"{statement['failed']:,}",
            f"{statement['total_us'] / total_us:.1%}",
        )
        rows.append([calls, failed, share, mean, f"{statement['max_us'] / 1e3:,.2f}", _short(statement["shape"])])
    print_rows(
        ["CALLS", "FAILED", "TIME", "MEAN MS", "MAX MS", "STATEMENT"],
        rows,
        right=["CALLS", "FAILED", "TIME", "MEAN MS", "MAX MS"],
    )
    if len(statements) > limit:
        click.echo(f"and {len(statements) - limit:,} others (--limit)")
    for statement in statements[:limit]:
        _print_values(statement.get("example", {}))


def _bars(counts: Sequence[int]) -> str:
    most = max(counts) or 1
    return "".join(_BARS[round(count / most * (len(_BARS) - 1))] for count in counts)
