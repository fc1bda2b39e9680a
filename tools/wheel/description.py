"""The page of the package, which a registry shows: the README, whose links lead somewhere from everywhere.

Where the sources are published is known to whoever publishes: ``$PGDYNO_REPOSITORY_URL``, or the variables that GitHub sets for
a workflow. Without them a link to a file becomes its text, and no address is invented.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)")
_LINK_OR_CODE = re.compile(
    r"(?P<code>(`+)(?!`).+?(?<!`)\2(?!`))|(?P<picture>!?)\[(?P<label>[^\]]*)\]\((?P<target>[^)\s]+)\)"
)
_ABSOLUTE = re.compile(r"^(?:[a-z][a-z0-9+.-]*:|#)")
_FENCE = re.compile(r"^\s*(?:```|~~~)")
_COMMENT = re.compile(r"^<!--.*-->$")


def repository_url() -> str | None:
    """The address of the sources, without a slash at its end."""
    if named := os.environ.get("PGDYNO_REPOSITORY_URL"):
        return named.rstrip("/")
    server, name = os.environ.get("GITHUB_SERVER_URL"), os.environ.get("GITHUB_REPOSITORY")
    return f"{server}/{name}" if server and name else None


def commit(root: Path) -> str:
    """The commit that is built; ``HEAD`` where there is no git."""
    process = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True, check=False)
    return process.stdout.strip() if process.returncode == 0 else "HEAD"


def of_package(root: Path, metadata: str, more: list[str]) -> str:
    """A ``METADATA`` or ``PKG-INFO`` with more headers, the project's addresses, and absolute links in its description."""
    head, _, body = metadata.partition("\n\n")
    url = repository_url()
    lines = [*head.splitlines(), *more]
    if url is not None:
        at = commit(root)
        lines += [
            f"Project-URL: Repository, {url}",
            f"Project-URL: Documentation, {url}/blob/{at}/docs/README.md",
            f"Project-URL: Changelog, {url}/blob/{at}/CHANGELOG.md",
        ]
    return "\n".join(lines) + "\n\n" + absolute(body, url, commit(root))


def absolute(text: str, url: str | None, at: str) -> str:
    """Markdown whose links to files are addresses at a commit, or, without ``url``, their text; pictures need one."""

    def replace(picture: str, label: str, target: str) -> str:
        if url is None:
            return "" if picture else label
        return f"{picture}[{label}]({url}/{'raw' if picture else 'blob'}/{at}/{target})"

    return with_links(text, replace)


def with_links(text: str, replace: Callable[[str, str, str], str]) -> str:
    """Markdown without lines of comments, in which ``replace(picture, label, target)`` stands for each relative link.

    ``picture`` is ``!`` or empty. What stands in code stays.
    """

    def of(match: re.Match[str]) -> str:
        if match["code"] or _ABSOLUTE.match(match["target"]):
            return match[0]
        return replace(match["picture"], match["label"], match["target"])

    lines, inside = [], False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        if inside:
            lines.append(line)
        elif not _COMMENT.match(line):
            lines.append(_LINK_OR_CODE.sub(of, line))
    return "\n".join(lines) + "\n"


def relative_links(text: str) -> list[str]:
    """Targets of links that lead nowhere from another place."""
    outside, inside = [], False
    for line in text.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            outside.append(line)
    return [target for _, _, target in _LINK.findall("\n".join(outside)) if not _ABSOLUTE.match(target)]
