"""``make site``: the documents as pages that can be browsed and searched without a network, in ``dist/site``.

The documents stay as they are. Each step has a file: the navigation is read from ``docs/README.md``, a copy of the documents
gets the links of a site, Zensical makes pages of it, and the pages are examined afterwards.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONTENTS = "docs/README.md"
"""The table of contents, which is the navigation."""
