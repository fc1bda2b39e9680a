"""An exception from a lint or a type stands with its reason on the line; some rules have no exceptions.

Python: ``# noqa: S704 (why)`` or ``# type: ignore[arg-type]  # why``. Rust: ``#[allow(lint, reason = "why")]``.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

from tools.lint import Finding, project_files, relative

_PYTHON = re.compile(
    r"#\s*(noqa|type:\s*ignore|pragma:\s*no cover)\b(:\s*[A-Z]+\d+(?:,\s*[A-Z]+\d+)*|\[[\w,\s-]+\])?(.*)"
)
_RUST = re.compile(r"#!?\[(?:allow|expect)\(([^\]]*)\)\]")
NEVER = {"clippy::too_many_lines", "warnings"}
NEVER_IN_SOURCES = {"clippy::disallowed_methods", "clippy::disallowed_types", "clippy::disallowed_macros"}
"""What the clock-free crates may not do; their tests may, with a reason."""


def check(root: Path) -> list[Finding]:
    """Exceptions without a rule, without a reason, or from a rule that has none."""
    findings = []
    for path in project_files(root, ".py", ".rs"):
        text = path.read_text(encoding="utf-8")
        tests = "tests" in path.relative_to(root).parts
        results = _python(text) if path.suffix == ".py" else _rust(text, NEVER if tests else NEVER | NEVER_IN_SOURCES)
        findings += [Finding(relative(root, path), line, message) for line, message in results]
    return findings


def _python(text: str) -> list[tuple[int, str]]:
    messages = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        match = _PYTHON.search(token.string) if token.type == tokenize.COMMENT else None
        if match is None:
            continue
        kind, rule, reason = match.groups()
        if rule is None:
            messages.append((token.start[0], f"`{kind}` of everything: name the rule that does not fit here"))
        elif not re.search(r"\w{3}", reason):
            messages.append(
                (token.start[0], f"`{match.group().strip()}`: write the reason behind it, or repair the line")
            )
    return messages


def _rust(text: str, never: set[str]) -> list[tuple[int, str]]:
    messages = []
    for match in _RUST.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        lints = {word.strip() for word in match.group(1).split("reason")[0].split(",")} - {""}
        messages += [(line, f"{lint} has no exceptions: change the code") for lint in sorted(lints & never)]
        if "reason" not in match.group(1):
            messages.append((line, f'`{match.group()}`: add `reason = "…"`, or repair what the lint says'))
    return messages
