"""``pgdyno demo``: the comparison of the README."""

from __future__ import annotations

import click

WORDS = ("gp3", "gp3:iops=8000", "io2bx:iops=8000", "--warmup", "10s", "--duration", "20s")
"""What is compared: some minutes on two cores. At 16,000 IOPS two cores would be the limit, and not the volume."""


@click.command(
    short_help="Compare three emulated volumes in five minutes.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("options", metavar="[OPTIONS OF COMPARE]...", nargs=-1, type=click.UNPROCESSED)
def command(options: tuple[str, ...]) -> None:
    """Compare PostgreSQL on three emulated volumes in five minutes, and write a report.

    It is `pgdyno compare gp3 gp3:iops=8000 io2bx:iops=8000 --warmup 10s --duration 20s`. Options of `pgdyno compare` can be
    added, for example --results.

    \b
    Example:
      sudo pgdyno demo
    """
    from pgdyno.cli.compare import command as compare

    code = compare.main([*WORDS, *options], prog_name="pgdyno demo", standalone_mode=False)
    if isinstance(code, int):
        click.get_current_context().exit(code)
