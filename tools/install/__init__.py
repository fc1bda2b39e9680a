"""``make bench ONLY=install``: pgdyno's wheel, image and source distribution, installed and used where there is no clone.

Each part of the record is made by itself and kept, so an interrupted bench resumes: the wheel of a fresh clone, bare Debian
roots (:mod:`tools.install.root`, :mod:`tools.install.walk`), the image, the source distribution.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "results" / "install"
"""The record, and the wheel that all parts install."""
