"""A strict reader of OpenMetrics text, written from the specification (version 1.0): what it does not know, it refuses."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

SUFFIXES = {
    "counter": {"_total"},
    "gauge": {""},
    "info": {"_info"},
    "histogram": {"_bucket", "_count", "_sum"},
}
_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})\{{(.*)\}} (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(?:,|$)')
_ESCAPES = {"\\\\": "\\", '\\"': '"', "\\n": "\n"}


@dataclass
class Family:
    """One family as it was read."""

    name: str
    kind: str
    unit: str = ""
    meaning: str = ""
    samples: list[tuple[str, dict[str, str], float]] = field(default_factory=list)
    """Suffix, labels, value."""

    def value(self, suffix: str = "", **labels: str) -> float:
        """The value of one sample."""
        values = [value for text, has, value in self.samples if text == suffix and has.items() >= labels.items()]
        assert len(values) == 1, f"{self.name}{suffix} {labels}: {len(values)} samples"
        return values[0]


def parse(text: str) -> dict[str, Family]:
    """Families by name; AssertionError where the text breaks a rule."""
    assert text.endswith("# EOF\n")
    lines = text.removesuffix("# EOF\n").split("\n")[:-1]
    families: dict[str, Family] = {}
    current: Family | None = None
    for line in lines:
        assert line, "no empty lines"
        if line.startswith("# "):
            _, keyword, name, rest = line.split(" ", 3)
            if keyword == "TYPE":
                assert name not in families, f"{name} stands twice: a family's samples stand together"
                assert rest in SUFFIXES
                current = families[name] = Family(name, rest)
            assert current is not None and current.name == name
            assert not current.samples, "what a family is stands before its samples"
            if keyword == "UNIT":
                assert name.endswith(f"_{rest}"), "a unit is the last word of the name"
                current.unit = rest
            elif keyword == "HELP":
                current.meaning = rest
            else:
                assert keyword == "TYPE"
            continue
        assert current is not None
        current.samples.append(_sample(line, current))
    for family in families.values():
        _check(family)
    return families


def _sample(line: str, family: Family) -> tuple[str, dict[str, str], float]:
    match = _SAMPLE.fullmatch(line)
    assert match, line
    name, inside, number = match.groups()
    assert name.startswith(family.name), f"{name} is not of {family.name}"
    suffix = name.removeprefix(family.name)
    assert suffix in SUFFIXES[family.kind], f"{name} in a {family.kind}"
    labels: dict[str, str] = {}
    at = 0
    while at < len(inside):
        label = _LABEL.match(inside, at)
        assert label, line
        assert label[1] not in labels
        labels[label[1]] = re.sub(r"\\.", lambda match: _ESCAPES[match[0]], label[2])
        at = label.end()
    return suffix, labels, float(number)


def _check(family: Family) -> None:
    seen = [(suffix, tuple(sorted(labels.items()))) for suffix, labels, _ in family.samples]
    assert len(seen) == len(set(seen)), f"{family.name} has a sample twice"
    if family.kind == "counter":
        assert all(value >= 0 and not math.isnan(value) for _, _, value in family.samples)
    if family.kind == "histogram":
        _check_histogram(family)


def _check_histogram(family: Family) -> None:
    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for suffix, labels, value in family.samples:
        if suffix == "_bucket":
            others = tuple(sorted((key, text) for key, text in labels.items() if key != "le"))
            buckets.setdefault(others, []).append((float(labels["le"]), value))
    for others, bucket in buckets.items():
        assert bucket == sorted(bucket), "buckets go upward and count what is below"
        assert [count for _, count in bucket] == sorted(count for _, count in bucket)
        assert bucket[-1][0] == math.inf
        assert family.value("_count", **dict(others)) == bucket[-1][1]
