"""``pgdyno schema``: the JSON Schemas that came with pgdyno."""

from __future__ import annotations

import click


@click.command(short_help="Print the JSON Schema of experiment files, or of results.")
@click.argument("name", type=click.Choice(["experiment", "compare", "diagnose", "diagnose-calendar", "reproduce"]))
def command(name: str) -> None:
    """Print a JSON Schema: of experiment files, for editors, or of what a command prints with --json.

    `compare` is that of `compare` and `run`; `diagnose-calendar` that of `diagnose DIR`.

    \b
    Example:
      pgdyno schema experiment > experiment.schema.json
      pgdyno schema compare > compare.schema.json
    """
    from pgdyno.cli import came_with

    click.echo(came_with.named("schema", ".schema.json", name).read_text(encoding="utf-8"), nl=False)
