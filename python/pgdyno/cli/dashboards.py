"""``pgdyno dashboards``: the dashboards that came with pgdyno."""

from __future__ import annotations

import click

ENDINGS = (".json", ".yml")
"""Of dashboards, and of alerts."""


@click.command(short_help="Print the dashboard for Grafana, or alerts for Prometheus.")
@click.argument("name", required=False)
def command(name: str | None) -> None:
    """Print a dashboard or the alerts of the metrics that `pgdyno metrics serve` offers; without NAME list them.

    \b
    Example:
      pgdyno dashboards
      pgdyno dashboards grafana-volumes > grafana-volumes.json
      pgdyno dashboards prometheus-diagnose > pgdyno.rules.yml
    """
    from pgdyno.cli import came_with

    from ..base.errors import InputError

    if name is None:
        for ending in ENDINGS:
            for file in came_with.files("dashboards", ending):
                click.echo(file)
        return
    both = [other for ending in ENDINGS for other in came_with.files("dashboards", ending)]
    if not any(name.removesuffix(ending) in both for ending in ENDINGS):
        raise InputError(f"there is no `{name}`", remedy=f"name one of {', '.join(both)}")
    ending = ENDINGS[1] if name.removesuffix(ENDINGS[1]) in came_with.files("dashboards", ENDINGS[1]) else ENDINGS[0]
    click.echo(came_with.named("dashboards", ending, name).read_text(encoding="utf-8"), nl=False)
