"""The command ``pgdyno``: finds a command by name, runs it, prints errors, sets the exit code.

A command's module in ``pgdyno/cli`` is imported only when the command is used, so that ``pgdyno --help`` and completion
start at once. Results go to standard output, progress and errors to standard error.
"""

from __future__ import annotations

import difflib
import importlib
import os
import select
import signal
import sys
from collections.abc import Sequence
from functools import partial
from typing import NoReturn

import click
from click.shell_completion import CompletionItem

from pgdyno.cli import streams
from pgdyno.cli.terminal import WIDEST, HelpContext, fit, wants_colour

from .. import __version__
from ..base import owner
from ..base.errors import (
    EXIT_CODES,
    EXIT_FAILURE,
    EXIT_INTERRUPTED,
    EXIT_OK,
    OutputError,
    PgdynoError,
    refused_by_machine,
)
from ..base.text import printable

GROUPS: dict[str, dict[str, str]] = {
    "Find out": {
        "diagnose": "Find what limits a running PostgreSQL server, and the cheapest fix.",
        "size": "Find the cheapest volumes and instances for a measured load.",
        "compare": "Compare PostgreSQL on two or more emulated volumes.",
        "run": "Run an experiment file.",
        "demo": "Compare three emulated volumes in five minutes.",
        "crashtest": "Simulate power failures and check what survives.",
        "reproduce": "Repeat published benchmarks and compare the results.",
    },
    "Results": {
        "runs": "List the recorded experiments and runs.",
        "report": "Write the report of an experiment again.",
        "query": "Query the recorded runs with SQL.",
    },
    "Workloads": {
        "load": "Load files into a running PostgreSQL, each row exactly once.",
        "drive": "Run SQL scripts against a server and measure them.",
        "capture": "Record the statements of an application, and replay them.",
        "data": "Keep your own databases for experiments, and generate data sets.",
        "hosts": "Let other hosts drive a load: certificates, scheduler, workers.",
    },
    "Volumes": {
        "volume": "Attach, list, measure, modify, fail and detach emulated volumes.",
        "metrics": "Show volumes as CloudWatch metrics, and serve them to Prometheus.",
        "catalog": "Look up volume types and instance types: limits, prices, sources.",
    },
    "Set-up": {
        "doctor": "Check what this machine can do, and clean up after killed runs.",
        "show": "Print examples, schemas, dashboards and shell completion.",
    },
}
"""The commands in the groups of ``pgdyno --help``, each with its line. Kept here so that help imports none of them."""
COMMANDS = {name: line for commands in GROUPS.values() for name, line in commands.items()}
"""Every command and its line."""
MODULES = {"demo": "compare", "runs": "results", "report": "results", "query": "results"}
"""Modules of commands that share one; every other command is ``command`` in the module of its name."""
ELSEWHERE = {
    "database": "data",
    "generate": "data generate",
    "instance": "catalog",
    **{name: f"show {name}" for name in ("examples", "schema", "dashboards", "completion")},
}
"""Words that are close to no command, and the command that does it."""

_OUTPUT, _ERROR = 1, 2
"""Descriptors of standard output and standard error."""
AGAIN_S = 0.01
"""After this an interruption that was dropped comes again."""
_INTERRUPTING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class LazyGroup(click.Group):
    """A group whose commands are modules of ``pgdyno.cli``."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order of the groups."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command; ``None`` when there is no such command."""
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"pgdyno.cli.{MODULES.get(cmd_name, cmd_name)}")
        command = getattr(module, cmd_name if cmd_name in MODULES else "command")
        assert isinstance(command, click.Command)
        return fit(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is refused with the nearest name."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            near = ELSEWHERE.get(args[0]) or "".join(difflib.get_close_matches(args[0], COMMANDS, n=1))
            hint = f" Did you mean `pgdyno {near}`?" if near else " `pgdyno --help` lists the commands."
            raise click.UsageError(f"There is no command `{args[0]}`.{hint}", ctx)
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Names of commands without importing them; click completes the options."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        return [CompletionItem(name, help=text) for name, text in COMMANDS.items() if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The groups of commands, their meanings side by side in one column, and the exit codes."""
        width = max(map(len, COMMANDS))
        for title, commands in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), meaning) for code, meaning in EXIT_CODES.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": WIDEST})
@click.version_option(__version__, "-V", "--version", message="pgdyno %(version)s")
def cli() -> None:
    """Measure what a cloud volume does to PostgreSQL, before paying for it.

    \b
    Example:
      pgdyno doctor
      pgdyno compare gp3 io2bx:iops=8000
    """


cli.context_class = HelpContext


def run(arguments: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code; errors are printed here and nowhere else."""
    code = _run(arguments)
    owner.give_modules()
    try:
        if sys.stdout is not None:  # it may be closed from the beginning
            sys.stdout.flush()  # here a reader that has gone can still be handled
    except BrokenPipeError:
        _unread()
    except OutputError as error:
        return code or print_error(error)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    try:
        words = None if arguments is None else list(arguments)
        colour = None if wants_colour(sys.stdout) else False
        result = cli.main(words, prog_name="pgdyno", standalone_mode=False, color=colour)
    except PgdynoError as error:
        return print_error(error)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return error.exit_code
    except click.ClickException as error:
        context = error.ctx if isinstance(error, click.UsageError) else None
        text = f"read `{context.command_path} --help`" if context is not None else ""
        return print_error(PgdynoError(error.format_message(), remedy=text, exit_code=error.exit_code))
    except (KeyboardInterrupt, click.Abort):
        print("interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except SystemExit as error:
        # click ends so where a pipe is broken, whichever it was.
        if error.code != EXIT_FAILURE:
            raise
        return _broken()
    except BrokenPipeError:
        return _broken()
    except Exception as error:  # noqa: BLE001 - the last place that can say what to do about a bug
        refused = refused_by_machine(error)
        return _print_bug(error) if refused is None else print_error(refused)
    # Outside its standalone mode click returns the code of `ctx.exit(code)`, or what the command returned.
    return result if isinstance(result, int) and not isinstance(result, bool) else EXIT_OK


def _print_bug(error: BaseException) -> int:
    import traceback

    from ..base import installation

    traceback.print_exception(error)
    return print_error(
        PgdynoError(
            f"this is a bug in pgdyno {__version__}: {type(error).__name__}: {error}",
            remedy=f"{installation.how_to_report()}; `pgdyno doctor --clean` removes what it may have left behind",
            exit_code=EXIT_FAILURE,
        )
    )


def _unread() -> int:
    """The reader of our output has gone (`pgdyno runs | head`): not an error, and nothing more can be printed there."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), _OUTPUT)
    return EXIT_OK


def _broken() -> int:
    """The exit code for a broken pipe: success if it is our output; otherwise an error, so that output is not silently empty."""
    if _is_unread():
        return _unread()
    if _gone():
        return EXIT_FAILURE
    return print_error(
        PgdynoError(
            "a pipe to another program broke: the program ended before it had read all its input",
            remedy="run the command again; `pgdyno doctor` says if something is missing",
        )
    )


def _is_unread() -> bool:
    """Whether standard output is a pipe without a reader. If standard error has none either, the command was cut off."""
    return _gone() == {_OUTPUT}


def _gone() -> set[int]:
    """Which of our outputs are pipes without a reader."""
    poll = select.poll()
    for descriptor in (_OUTPUT, _ERROR):
        poll.register(descriptor, 0)
    return {descriptor for descriptor, item in poll.poll(0) if item & (select.POLLERR | select.POLLHUP)}


def main() -> NoReturn:
    """The entry point of the installed command. SIGTERM and SIGHUP end a command as Ctrl-C does: everything is undone.

    No signal stays blocked, whatever started the command: a child that inherited the mask could not be ended.
    """
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        results = []
        for number in _INTERRUPTING:
            # Under nohup SIGHUP is ignored, and SIGINT in the background of a shell without job control.
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, _interrupt)
                results.append(number)
        sys.unraisablehook = partial(_dropped, results)
        streams.install()
        code = run()
    except KeyboardInterrupt:  # before the command began, or while its end was printed
        print("interrupted", file=sys.stderr)
        code = EXIT_INTERRUPTED
    sys.exit(code)


def _dropped(signals: Sequence[signal.Signals], what: sys.UnraisableHookArgs) -> None:
    """An interruption that met a destructor, or a generator that was being closed, where Python drops exceptions: it comes again."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)
        return
    import threading

    for number in signals:
        signal.signal(number, _interrupt)
    # Not here: whatever is raised in this function is dropped as well.
    again = threading.Timer(AGAIN_S, os.kill, (os.getpid(), signals[0]))
    again.daemon = True
    again.start()


def _interrupt(_number: int, _frame: object) -> NoReturn:
    """Interrupt the command once: a second signal, of any kind, must not interrupt the undoing, nor the tools that undo."""
    for number in _INTERRUPTING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def print_error(error: PgdynoError) -> int:
    """Print an error on standard error, and return its exit code."""
    red, bold, plain = ("\033[31m", "\033[1m", "\033[0m") if wants_colour(sys.stderr) else ("", "", "")
    code = f"[{error.code}]" if error.code else ""
    to = streams.drawn(sys.stderr)
    print(f"{red}{bold}error{code}:{plain} {printable(error.message)}", file=to)
    if error.remedy:
        print(f"  {bold}remedy:{plain} {printable(error.remedy)}", file=to)
    return error.exit_code
