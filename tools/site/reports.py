"""Reports among the pages of the site: that of the demonstration and that of a sweep, of the newest results of each.

Results are not part of the sources: `make demo` and `pgdyno run experiments/piops-sweep.toml` make them. A site that is built without
them has no page of reports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pgdyno.cli import compare

if TYPE_CHECKING:
    from pathlib import Path

    from pgdyno.analysis.compare import Comparison

FOLDER = "reports"
PAGE = "reports.md"
TITLE = "Reports"
_VOLUMES = compare.WORDS[: compare.WORDS.index("--warmup")]
_ICON = '<link rel="icon" href="../assets/images/favicon.png">'
"""That of the site: without one a browser asks the server for /favicon.ico."""
_HEAD = """# Reports

Pages that `pgdyno report` wrote; each is one file. [Reading a report](guide/report.md) explains them.

"""


def write(results: Path, folder: Path) -> list[dict[str, Any]]:
    """Write what there is below ``folder``, and the page that leads to it; returns its part of the navigation."""
    from pgdyno.report import write_report

    document = {"demo": _demo(results), "sweep": _sweep(results)}
    lines = []
    for name, comparison in document.items():
        if comparison is not None:
            (folder / FOLDER).mkdir(exist_ok=True)
            page = write_report(comparison, folder / FOLDER / f"{name}.html").page
            page.write_text(page.read_text(encoding="utf-8").replace("<head>", f"<head>{_ICON}", 1), encoding="utf-8")
            lines.append(f"- [{_title(name, comparison)}]({FOLDER}/{name}.html)")
    if not lines:
        return []
    (folder / PAGE).write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")
    return [{TITLE: [PAGE]}]


def _title(name: str, comparison: Comparison) -> str:
    record = comparison.experiment
    what = "The demonstration: `pgdyno demo`" if name == "demo" else f"A sweep: {record.title or record.name}"
    return f"{what}, {record.experiment_id}"


def _demo(results: Path) -> Comparison | None:
    """The newest whole comparison of the demonstration's volumes."""
    from pgdyno.analysis.compare import summarise
    from pgdyno.results import list_experiments

    for list_experiment in reversed(list_experiments(results, {})):
        whole = len(list_experiment.runs) == len(list_experiment.record.arms) * list_experiment.record.replicates
        if list_experiment.record.kind == "compare" and list_experiment.record.arms == _VOLUMES and whole:
            return summarise(list_experiment.path)
    return None


def _sweep(results: Path) -> Comparison | None:
    """The newest sweep with a run of every arm."""
    from pgdyno.analysis.compare import summarise
    from pgdyno.results import list_experiments

    for list_experiment in reversed(list_experiments(results, {})):
        if len(list_experiment.runs) >= len(list_experiment.record.arms) and list_experiment.record.factors:
            comparison = summarise(list_experiment.path)
            if comparison.sweep is not None:
                return comparison
    return None
