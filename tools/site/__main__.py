"""Builds the site into ``dist/site`` with Zensical, and examines it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pgdyno.results.names import results_root
from tools.site import CONTENTS, ROOT, examine, navigation, reports, stage
from tools.wheel import description

SITE = ROOT / "dist" / "site"
ZENSICAL = Path(sys.executable).with_name("zensical")
STYLE = {"site.css": ".md-typeset table thead:not(:has(th:not(:empty))) { display: none }\n"}
"""Markdown's tables need a head; one without words is not shown."""


def settings(nav: list[dict[str, Any]]) -> dict[str, Any]:
    """Zensical's configuration. What would ask another host (web fonts, a repository's figures) is off."""
    features = ["content.code.copy", "navigation.path", "navigation.top", "navigation.footer", "search.highlight"]
    palette = [  # the first follows the system; a reader's own choice is kept in the browser
        _scheme("(prefers-color-scheme)", None, "lucide/sun-moon", "light"),
        _scheme("(prefers-color-scheme: light)", "default", "lucide/sun", "dark"),
        _scheme("(prefers-color-scheme: dark)", "slate", "lucide/moon", "the system's"),
    ]
    return {
        "site_name": "pgdyno",
        "site_description": "What a cloud volume does to PostgreSQL",
        "use_directory_urls": False,  # so that links work from a folder, too
        "nav": nav,
        "theme": {"font": False, "language": "en", "features": features, "palette": palette},
        "extra_css": list(STYLE),
        "plugins": ["search"],
        "extra": {"generator": False},
        "markdown_extensions": [
            "tables",
            "sane_lists",
            {"toc": {"permalink": True, "slugify": {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}}}},
            "pymdownx.betterem",
            "pymdownx.highlight",
            "pymdownx.superfences",
        ],
    }


def _scheme(media: str, name: str | None, icon: str, following: str) -> dict[str, Any]:
    """Colours, and the button that leads to the following ones."""
    colours = {"scheme": name} if name else {}
    return {"media": media, **colours, "toggle": {"icon": icon, "name": f"Switch to {following} colours"}}


def build(root: Path, site: Path, results: Path) -> list[str]:
    """Write the site, with reports of what is in ``results``; returns what is wrong. :class:`subprocess.CalledProcessError`."""
    nav = navigation.read((root / CONTENTS).read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        staged = Path(folder)
        stage.copy(root, staged / "docs", description.repository_url(), description.commit(root))
        for name, rules in STYLE.items():
            (staged / "docs" / name).write_text(rules, encoding="utf-8")
        nav += reports.write(results, staged / "docs")
        configuration = staged / "mkdocs.yml"
        configuration.write_text(json.dumps(settings(nav)), encoding="utf-8")  # JSON is YAML
        subprocess.run([ZENSICAL, "build", "--strict", "--config-file", configuration], cwd=staged, check=True)
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(staged / "site", site)
    unnamed = [f"{document} is not in {CONTENTS}: name it there" for document in navigation.missing(root, nav)]
    return unnamed + examine.problems(site)


def main() -> int:
    """Build and examine; exit code 1 when something is wrong."""
    if not ZENSICAL.exists():
        print("site: Zensical is not installed: run `make site`", file=sys.stderr)
        return 3
    try:
        wrong = build(ROOT, SITE, results_root())
    except subprocess.CalledProcessError:
        print("site: Zensical failed: the lines above say why", file=sys.stderr)
        return 1
    for problem in wrong:
        print(f"site: {problem}", file=sys.stderr)
    if wrong:
        return 1
    print(f"{SITE.relative_to(ROOT)}/index.html, {sum(1 for _ in SITE.rglob('*.html'))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
