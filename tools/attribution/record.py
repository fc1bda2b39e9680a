"""What was measured of a draw, kept on disk after each run, so that an interrupted bench goes on."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field

from pgdyno.analysis.binding.rules import Confidence, Limit
from pgdyno.base import engine
from tools.measured import Kept

RULES = Path(__file__).resolve().parents[2] / "python" / "pgdyno" / "analysis" / "binding"


class Result(BaseModel):
    """One scenario."""

    model_config = ConfigDict(frozen=True)

    key: str
    truth: Limit
    refuted: str | None
    """Why the run was not limited by what was meant; such a run is not judged."""
    limit: Limit | None
    confidence: Confidence
    shares: dict[Limit, float]
    volume: str
    workload: str
    tps: float

    @property
    def right(self) -> bool:
        """Whether the verdict is the limit that was made to bind."""
        return self.limit == self.truth

    @property
    def confidently_wrong(self) -> bool:
        """The one fault that is never allowed."""
        return not self.right and self.confidence == "high"


class Record(Kept):
    """A draw, as far as it was measured."""

    seed: int
    rules: str
    """Digest of the rules and thresholds: with others, it is another record."""
    build_hash: str
    results: list[Result] = Field(default_factory=list)

    @classmethod
    def here(cls, seed: int) -> Self:
        """An empty one of this state of the code."""
        return cls(seed=seed, rules=rules_digest(), build_hash=engine.facts().build_hash)

    def goes_on(self, other: Record) -> bool:
        """Whether the results of both may stand in one table."""
        return (self.seed, self.rules, self.build_hash) == (other.seed, other.rules, other.build_hash)

    @property
    def judged(self) -> list[Result]:
        """Results whose truth is known."""
        return [result for result in self.results if result.refuted is None]


def rules_digest(folder: Path = RULES) -> str:
    """Digest of the rules' code without comments and docstrings, so that a page says by which rules it was measured.

    It depends on the version of Python, whose `ast.unparse` writes the code.
    """
    sha256 = hashlib.sha256()
    for file in sorted(folder.glob("*.py")):
        code = ast.unparse(_WithoutDocumentation().visit(ast.parse(file.read_text(encoding="utf-8"))))
        sha256.update(file.name.encode() + b"\0" + code.encode())
    return sha256.hexdigest()[:12]


class _WithoutDocumentation(ast.NodeTransformer):
    """Removes the texts that stand alone: docstrings and the explanations below constants."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) else node
