"""``pgdyno volume mark``: a mark in the write log of an attached volume."""

from __future__ import annotations

import click

from pgdyno.cli import complete


@click.command()
@click.argument("name", shell_complete=complete.attached_volumes)
@click.argument("text")
def mark(name: str, text: str) -> None:
    """Note TEXT in the write log of the volume NAME, between what was written before and after it.

    The volume was attached with --write-log. A log that has used up its memory is full and has no marks any more.

    \b
    Example:
      sudo pgdyno volume mark logged "checkpoint begins"
    """
    from ..base.text import size
    from ..machine import preflight, volume

    result = volume.find(name)
    preflight.require_root("marking a write log")
    log = result.mark(text)
    full = "; it is full and has ended" if log["full"] else ""
    click.echo(f"{name}: {log['events']:,} events, {size(log['data_bytes'])} of data{full}")
