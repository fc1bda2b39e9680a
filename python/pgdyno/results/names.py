"""Names and places of results.

::

    results/<experiment id>/experiment.json
    results/<experiment id>/runs/<position>-<arm>-r<block>/run.json, workload/, probe/, postgres/, logs/
    results/<experiment id>/failed/<position>-<arm>-r<block>/                the logs of a run that failed
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import unicodedata
from pathlib import Path
from typing import Any

RESULTS_VARIABLE = "PGDYNO_RESULTS"
PARTIAL = ".partial"
"""Suffix of a run's directory until it is whole; readers ignore such directories."""
EXPERIMENT_FILE = "experiment.json"
LOGS = "logs"
FAILED = "failed"
"""Folder of an experiment for the logs of runs and loads that failed; of these nothing else is kept."""

_SLUG_LENGTH_MAX = 48


def results_root(flag: Path | None = None) -> Path:
    """The results folder: ``--results``, else ``$PGDYNO_RESULTS``, else ``./results``. It need not exist."""
    if flag is not None:
        return flag
    return Path(os.environ.get(RESULTS_VARIABLE) or "results")


def identity_hash(facts: dict[str, Any]) -> str:
    """SHA-256 (hex) of facts, independent of the order of keys: equal facts, equal experiment."""
    text = json.dumps(facts, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def experiment_id(kind: str, experiment_hash: str, created_unix_ns: int) -> str:
    """``20261121T124500Z-compare-0a1b2c``: sorts by time, and equal experiments end alike."""
    moment = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(created_unix_ns // 1_000_000_000))
    return f"{moment}-{slug(kind)}-{experiment_hash[:6]}"


def run_name(position: int, arm: str, block: int) -> str:
    """``03-gp3-iops-6000-r2``: the fourth run (positions begin at 0), of that arm, in the second block."""
    return f"{position:02d}-{slug(arm)}-r{block}"


def slug(text: str) -> str:
    """Text as part of a file's name: lower case, digits, single dashes; a letter with an accent is the letter."""
    plain = unicodedata.normalize("NFKD", text.lower()).encode("ascii", "ignore").decode()
    made = re.sub(r"-*\.[-.]*", ".", re.sub(r"[^a-z0-9.]+", "-", plain)).strip("-.")
    return made[:_SLUG_LENGTH_MAX].rstrip("-.") or "arm"
