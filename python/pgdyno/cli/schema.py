"""``pgdyno schema``: the JSON Schemas that came with pgdyno."""

from __future__ import annotations

import click


@click.command(short_help="Print the JSON Schema of experiment files, or of results.")
@click.argument("name", type=click.Choice(["experiment", "compare"]))
def command(name: str) -> None:
    """Print a JSON Schema: of experiment files, for editors, or of what `compare` and `run` print with --json.

    \b
    Example:
      pgdyno schema experiment > experiment.schema.json
      pgdyno schema compare > compare.schema.json
    """
    from pgdyno.cli import came_with

    click.echo(came_with.named("schema", ".schema.json", name).read_text(encoding="utf-8"), nl=False)
