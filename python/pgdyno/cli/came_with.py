"""Files that came with pgdyno: experiments, schemas, dashboards. A clone has them in its root, an installed package in itself."""

from __future__ import annotations

from pathlib import Path

from ..base import installation
from ..base.errors import HostError, InputError


def files(folder: str, ending: str) -> dict[str, Path]:
    """Name -> file of a folder, in the order of their names. :class:`HostError` when the installation lacks them."""
    place = installation.data_folder(folder)
    files = {path.name.removesuffix(ending): path for path in sorted(place.glob(f"*{ending}"))}
    if not files:
        raise HostError(f"{place} has no files, which came with pgdyno", remedy=installation.how_to_install_again())
    return files


def named(folder: str, ending: str, name: str) -> Path:
    """The file of a name, with or without its ending. :class:`InputError` when there is none."""
    there = files(folder, ending)
    path = there.get(name.removesuffix(ending))
    if path is None:
        raise InputError(f"there is no `{name}`", remedy=f"name one of {', '.join(there)}")
    return path
