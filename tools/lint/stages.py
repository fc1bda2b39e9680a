"""Each stage of the volume model is one file, one test and one page, all of one name."""

from __future__ import annotations

from pathlib import Path

from tools.lint import Finding

STAGES = "crates/volume/src/stage"
TESTS = "crates/volume/tests"
PAGES = "docs/concept/volume"


def check(root: Path) -> list[Finding]:
    """Stages without a test or a page, and pages without a stage."""
    findings = []
    stages = {path.stem: path for path in (root / STAGES).glob("*.rs") if path.stem != "mod"}
    for stage, path in sorted(stages.items()):
        if not (root / TESTS / f"{stage}.rs").is_file() and "#[cfg(test)]" not in path.read_text():
            findings.append(Finding(f"{STAGES}/{stage}.rs", 0, f"has no test: write {TESTS}/{stage}.rs"))
        if not (root / PAGES / f"{stage}.md").is_file():
            findings.append(Finding(f"{STAGES}/{stage}.rs", 0, f"has no page: explain the idea in {PAGES}/{stage}.md"))
    for page in sorted((root / PAGES).glob("*.md")):
        if page.stem not in stages and page.stem != "README":
            findings.append(
                Finding(f"{PAGES}/{page.name}", 0, f"is about no stage: rename it after a file in {STAGES}")
            )
    return findings
