"""Writes what ``docs/guide/published.md`` says of published comparisons, and keeps what it needs of recorded results.

::

    python -m tools.published                  write the guide's summary and its pictures
    python -m tools.published RESULTS          write catalog/published/recorded/NAME.json for each experiment that RESULTS has
    python -m tools.published RESULTS --add    keep the runs that are kept already, too: of an experiment that was recorded in parts
"""

from __future__ import annotations

import sys
from pathlib import Path

from pgdyno.base.errors import PgdynoError
from pgdyno.flow.resume import recorded
from pgdyno.published.experiments import extract_figures, find_results, merge_figures, read_figures
from pgdyno.published.judge import metrics_of
from pgdyno.published.library import DocumentLibrary, library
from tools.reference import published_chart, published_lines, published_summary

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "catalog" / "published" / "recorded"
"""What is kept."""
PICTURES = ROOT / "docs" / "picture"
ADD = "--add"


def main(arguments: list[str]) -> int:
    """Write the files; returns the exit code."""
    folders = [argument for argument in arguments if argument != ADD]
    if not arguments:
        write_guide()
        return 0
    if len(folders) != 1 or folders[0].startswith("-"):
        print(f"usage: python -m tools.published [RESULTS [{ADD}]]", file=sys.stderr)
        return 2
    try:
        names = write(library(), Path(folders[0]), FOLDER, add=ADD in arguments)
    except PgdynoError as error:
        print(f"{error.message}; {error.remedy}", file=sys.stderr)
        return 1
    print(f"kept: {', '.join(names) or 'nothing'}; now `make generate`")
    return 0


def write_guide() -> None:
    """Write the summary, the picture of all ratios and those of the documents' charts."""
    texts = {
        published_summary.GUIDE / published_summary.FILE: published_summary.page(),
        PICTURES / published_chart.FILE: published_chart.picture(),
    }
    texts |= {
        PICTURES / name: text for name, text in published_lines.pictures(published_summary.judge_documents()).items()
    }
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")


def write(library: DocumentLibrary, results: Path, folder: Path, *, add: bool = False) -> list[str]:
    """Keep each experiment that has runs in a folder of results, and with ``add`` the runs that were kept before; the names."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = []
    for document in library.documents:
        metrics = metrics_of(document)
        for name, result in find_results(results, [library.experiment(run) for run in document.run]).items():
            if result.comparison is None or result.path is None:
                continue
            new, file = (
                extract_figures(name, result.comparison, recorded(result.path), metrics),
                folder / f"{name}.json",
            )
            if add and file.is_file():
                new = merge_figures(read_figures(file), new)
            file.write_text(f"{new.model_dump_json(indent=1)}\n", encoding="utf-8")
            kept.append(name)
    return kept


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
