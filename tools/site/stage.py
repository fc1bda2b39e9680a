"""A copy of the documents whose links are those of a site: to its pages, or to the repository at the commit that is built."""

from __future__ import annotations

import posixpath
import shutil
from pathlib import Path

from tools import reference
from tools.lint.links import links
from tools.site import CONTENTS
from tools.wheel import description

_FIRST = {"README.md": "index.md", CONTENTS: "documentation.md"}
"""Files whose page has another name: the README is the first page, where ``docs/README.md`` would be otherwise."""


def page_of(path: str) -> str | None:
    """The page that a file of the repository becomes, or None: ``docs/guide/run.md`` is ``guide/run.md``."""
    if path in _FIRST:
        return _FIRST[path]
    return path.removeprefix("docs/") if path.startswith("docs/") and path.endswith(".md") else None


def linked_pages(text: str, source: str) -> list[str]:
    """The pages that a document of the repository links to, in order."""
    targets = (_resolved(target.partition("#")[0], source) for _, target in links(text))
    return [page for page in map(page_of, targets) if page is not None]


def copy(root: Path, folder: Path, url: str | None, commit: str) -> None:
    """Write every document and picture below ``folder``, and the pages of the reference that are made from the sources."""
    for path in [root / "README.md", *sorted((root / "docs").rglob("*"))]:
        source = path.relative_to(root).as_posix()
        if path.is_dir():
            continue
        page = page_of(source)
        goal = folder / (page or source.removeprefix("docs/"))
        goal.parent.mkdir(parents=True, exist_ok=True)
        if page is None:
            shutil.copy(path, goal)
        else:
            goal.write_text(rewrite(path.read_text(encoding="utf-8"), source, root, url, commit), encoding="utf-8")
    for name in reference.PAGES:
        text = rewrite(reference.written(name), f"{reference.FOLDER}/{name}", root, url, commit)
        (folder / "reference" / name).write_text(text, encoding="utf-8")


def rewrite(text: str, source: str, root: Path, url: str | None, commit: str) -> str:
    """A document of the repository as one of the site; ``source`` is its path.

    Without the repository's address a link to a file that is no page becomes its text, as on the package's page
    (:func:`tools.wheel.description.absolute`).
    """
    page = page_of(source)
    assert page is not None, source

    def replace(picture: str, label: str, target: str) -> str:
        file_name, hash_sign, heading = target.partition("#")
        path = _resolved(file_name, source)
        goal = page_of(path) or (path.removeprefix("docs/") if picture else None)
        if goal is not None:
            address = posixpath.relpath(goal, posixpath.dirname(page) or ".")
        elif url is not None:
            address = f"{url}/{'tree' if (root / path).is_dir() else 'blob'}/{commit}/{path}"
        else:
            return label
        return f"{picture}[{label}]({address}{hash_sign}{heading})"

    return description.with_links(text, replace)


def _resolved(file_name: str, source: str) -> str:
    """The path in the repository that a relative link of a document means."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), file_name))
