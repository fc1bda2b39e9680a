"""Options that several commands have in the same words."""

from __future__ import annotations

import click

protocol = click.option(
    "-M",
    "--protocol",
    type=click.Choice(["simple", "extended", "prepared"]),
    default="prepared",
    show_default=True,
    help="Query protocol.",
)
rate = click.option("-R", "--rate", type=float, help="Open loop: transactions per second [closed loop].")
