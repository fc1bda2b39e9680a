"""``metrics.md``: CloudWatch's metrics, the formulas over them, and the families of the OpenMetrics text."""

from __future__ import annotations

import inspect

from pgdyno.advise.diagnose.calendar import FAMILIES as VERDICTS
from pgdyno.advise.metrics import cloudwatch
from pgdyno.advise.metrics.cloudwatch import EBS, EC2, METRICS
from pgdyno.advise.metrics.open_metrics import FAMILIES, full_name
from tools.reference import markdown as md

INTRODUCTION = """
How to get them: the [guide](../guide/metrics.md).
"""
CLOUDWATCH = f"""
One value per minute, as for volumes of Nitro instances, in the namespace {EBS}; metrics of the instance are in {EC2}. The statistic
is the one that is meaningful for a period; `--stat` selects another.
"""
FORMULAS = """
As functions of `pgdyno.advise.metrics.cloudwatch`. *Whitepaper* is "Optimizing PostgreSQL Running on Amazon EC2 Using Amazon EBS" (AWS, undated
copy read in November 2026); *guide* is the Amazon EC2 User Guide (awsdocs/amazon-ec2-user-guide e3707c43, 15 June 2023). A figure
without a divisor, as the latency of no operations, is None.
"""
OPEN_METRICS = """
Every sample has the label `volume`. A counter's samples end in `_total`, the information's in `_info`, a histogram's in `_bucket`,
`_count` and `_sum`.
"""
VERDICT = """
What `pgdyno metrics serve --diagnose DIR` adds: the newest watch of each directory. Every sample has the label `server`.
"""


def page() -> str:
    """The text of the page."""
    metrics = [[md.code(item.name), item.unit, item.statistic, item.meaning] for item in METRICS]
    families, verdicts = (
        [[md.code(full_name(item)), item.kind, item.unit, item.meaning] for item in group]
        for group in (FAMILIES, VERDICTS)
    )
    return md.page(
        "Metrics",
        "`python/pgdyno/advise/metrics`",
        INTRODUCTION,
        f"## CloudWatch\n\n{CLOUDWATCH.strip()}",
        md.table(["metric", "unit", "statistic", "meaning"], metrics),
        f"## Formulas\n\n{FORMULAS.strip()}",
        md.table(["function", "meaning"], _formulas()),
        f"## OpenMetrics\n\n{OPEN_METRICS.strip()}",
        md.table(["family", "type", "unit", "meaning"], families),
        f"### Verdicts\n\n{VERDICT.strip()}",
        md.table(["family", "type", "unit", "meaning"], verdicts),
    )


def _formulas() -> list[list[str]]:
    getmembers = inspect.getmembers(cloudwatch, inspect.isfunction)
    in_order = sorted(getmembers, key=lambda getmember: inspect.getsourcelines(getmember[1])[1])
    return [[md.code(f"{name}{_arguments(function)}"), _meaning(function)] for name, function in in_order]


def _arguments(function: object) -> str:
    assert callable(function)
    return f"({', '.join(inspect.signature(function).parameters)})"


def _meaning(function: object) -> str:
    return md.literals(inspect.getdoc(function) or "")
