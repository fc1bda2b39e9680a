"""``pgdyno dashboards``: the dashboards that came with pgdyno."""

from __future__ import annotations

import click


@click.command(short_help="Print the dashboard for Grafana.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print a dashboard of the metrics that `pgdyno metrics serve` offers; without NAME list them.

    \b
    Example:
      pgdyno dashboards
      pgdyno dashboards grafana-volumes > grafana-volumes.json
    """
    from pgdyno.cli import came_with

    if name is None:
        for one in came_with.files("dashboards", ".json"):
            click.echo(one)
    else:
        click.echo(came_with.named("dashboards", ".json", name).read_text(encoding="utf-8"), nl=False)
