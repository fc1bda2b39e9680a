"""What users read is in plain technical English: a list of words and phrases that have a plainer one.

Checked are the documents, the newest section of the changelog, the experiment files, and the strings, docstrings and comments of
the Python package and of the reference's templates.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tools.lint import Finding, project_files, relative

WORDS: dict[str, str] = {
    r"leav(?:e|es|ing) (?:\S+ ){0,6}away|left away": "omit",
    r"mend(?:s|ed|ing)?": "correct, fix",
    r"anew": "again",
    r"strangers?": "other processes",
    r"(?<!\sor\s)(?:nobody|somebody|anybody|whoever)": "the actor by name, or the passive voice",
    r"(?<!there\s)(?:is|are|was|were) no(?! (?:longer|more|less|fewer|one|doubt|limit|reason|faster|slower))": "is not a …, or has no …",
    r"so many(?! (?:that|of))": "the number, or `this number of`",
    r"(?:go|goes|went|going) on(?! (?:the|a|an|its|to))": "resume, continue",
    r"exist(?:s|ed)? already": "already exists, or `an existing …`",
    r"(?:is|are|was|were|been|be) begun": "started",
    r"(?:is|are|was|were|be) told(?! apart| here)": "is reported, gets",
    r"unless (?:it is )?(?:said|told|asked)": "by default",
    r"for ever": "always, or without limit of time",
    r"no number": "not a number",
    r"reckon(?:s|ed|ing)?": "compute, estimate, expect",
    r"sp(?:eak|eaks|oke) against": "is a reason against",
    r"(?:hold|holds|held|holding) against": "compare with",
    r"(?:can|could|may|might) be had": "is available",
    r"tak(?:e|es|en|ing) (?:\S+ )?away|took away": "remove, subtract",
    r"of (?:ours|yours|theirs)": "our, your, their",
    r"tpmC|QphH|QphD|(?:Power|Throughput)@Size": "NOPM, queries per hour: a TPC metric is the name of an audited result",
    r"the laboratory(?:'s)?": "the test harness, or pgdyno",
}
"""Regular expressions -> what to write instead. Words of an expression may be on two lines."""
INVERTED = r"(?:^|(?<=[.:;!?]\s)|(?<=\n\n)|(?<=\| ))Of (?:a|an|the|each|every|all|several|two|those|these|its|such)\s"
"""A genitive before its noun: ``Of a run, the …``, ``Of every volume.``"""

PATTERNS = [
    (re.compile(rf"\b(?:{words})(?![\w-])".replace(" ", r"\s+"), re.IGNORECASE), to) for words, to in WORDS.items()
]
PATTERNS.append((re.compile(INVERTED), "the noun first: `the … of a run`"))
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(`+)[^`\n]+\1")
_DOCUMENTS = ("README.md", "ARCHITECTURE.md", "STYLE.md", "PRINCIPLES.md", "CHANGELOG.md", "catalog/README.md")
_PYTHON = ("python/pgdyno/", "tools/reference/")


def check(root: Path) -> list[Finding]:
    """Phrases of the list."""
    return [
        Finding(name, line, f"`{phrase}`: write {to}")
        for name, item in _read_by_users(root)
        for line, phrase, to in item
    ]


def _read_by_users(root: Path) -> Iterator[tuple[str, list[tuple[int, str, str]]]]:
    """File, and line, phrase and what to write instead, of each phrase of the list that is in it."""
    for path in project_files(root, ".md", ".py", ".toml"):
        name = relative(root, path)
        if name in _DOCUMENTS or (name.startswith("docs/") and not name.startswith("docs/reference/")):
            yield name, phrases(_prose(path.read_text(encoding="utf-8"), name))
        elif name.startswith("experiments/"):
            yield name, phrases(path.read_text(encoding="utf-8").replace("\n# ", "\n  "))
        elif path.suffix == ".py" and name.startswith(_PYTHON):
            for at, text in _strings(path.read_text(encoding="utf-8")):
                yield name, [(at + line - 1, phrase, to) for line, phrase, to in phrases(text)]


def phrases(text: str) -> list[tuple[int, str, str]]:
    """Line, phrase and what to write instead, in the order of the text; what stands between backticks is skipped."""
    popens = [
        (match.start(), " ".join(match[0].split()), to)
        for pattern, to in PATTERNS
        for match in pattern.finditer(_CODE.sub(lambda code: "`" * len(code[0]), text))
    ]
    return [(text.count("\n", 0, at) + 1, phrase, to) for at, phrase, to in sorted(popens)]


def _prose(text: str, name: str) -> str:
    """A document without its blocks of code, or the newest section of the changelog: released ones stay as they are."""
    if name == "CHANGELOG.md":
        sections = [match.start() for match in re.finditer(r"^## ", text, re.MULTILINE)]
        text = text[: sections[1]] if len(sections) > 1 else text
    return _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def _strings(text: str) -> list[tuple[int, str]]:
    """Line and text of every comment and of every string of more than one word, docstrings too; ``{}`` is a value in one."""
    strings, parts = [], set()
    for node in ast.walk(ast.parse(text)):  # a string comes before its parts
        if isinstance(node, ast.JoinedStr):
            parts |= {id(part) for part in node.values}
            words = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.values]
            strings.append((node.lineno, "".join(map(str, words))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            strings.append((node.lineno, node.value))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    comments = [(token.start[0], token.string.lstrip("#: ")) for token in tokens if token.type == tokenize.COMMENT]
    return [(line, item) for line, item in strings + comments if " " in item]
