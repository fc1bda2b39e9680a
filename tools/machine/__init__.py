"""A virtual machine of Debian's packages, with systemd and control groups of version 2, in which pgdyno is installed and used."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
