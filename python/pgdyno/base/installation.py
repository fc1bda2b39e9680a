"""How this pgdyno was installed: where its files and its programs are, how to install it again, how to run it as root.

A clone, a virtual environment of pip's, a tool of pipx or uv, ``pip install --user``, ``--target`` and ``--prefix`` differ in
all of these. :mod:`pgdyno._build` says whether there is a source tree; everything else is here.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
import sysconfig
import threading
from collections.abc import Sequence
from pathlib import Path

from pgdyno import _build

_SITES = ("site-packages", "dist-packages")
_ONE_AT_A_TIME = threading.Lock()
"""sysconfig fills its variables at the first question, and until Python 3.12 a second thread may see them half filled."""
_SECRET = re.compile(r"password\s*=|://[^/@\s]*:[^/@\s]*@", re.IGNORECASE)


def program_folders() -> list[Path]:
    """Directories in which an installer may have put this package's programs, the nearest to the package first."""
    results = []
    site = _build.PACKAGE.parent
    if _build.source_root() is None:
        results.append(site / "bin")  # pip install --target
        if (
            site.name in _SITES
        ):  # PREFIX/lib/python3.X/site-packages: --user, --prefix, an overlay of uv's, a moved copy
            results.append(site.parents[2] / "bin")
    user_scheme = sysconfig.get_preferred_scheme("user")
    with _ONE_AT_A_TIME:
        results += [Path(sysconfig.get_path("scripts")), Path(sysconfig.get_path("scripts", user_scheme))]
    return list(dict.fromkeys(results))


def data_folder(name: str) -> Path:
    """One of :data:`pgdyno._build.DATA_FOLDERS`: in the root of a clone, or in the installed package."""
    assert name in _build.DATA_FOLDERS, name
    return (_build.source_root() or _build.FILES) / name


def _installer() -> str:
    """The program that installed pgdyno: ``make`` (a clone), ``pipx``, ``uv`` or ``pip``."""
    if _build.source_root() is not None:
        return "make"
    if (Path(sys.prefix) / "pipx_metadata.json").is_file():
        return "pipx"
    return "uv" if (Path(sys.prefix) / "uv-receipt.toml").is_file() else "pip"


def _pip() -> str:
    return f"{shlex.quote(sys.executable)} -m pip"


def how_to_install_again() -> str:
    """A remedy: the command that repairs this installation."""
    if _installer() == "pip":
        if importlib.util.find_spec("pip") is None:
            return "install pgdyno's wheel again with the program that installed it"
        return f"install pgdyno's wheel again: `{_pip()} install --force-reinstall --no-deps FILE.whl`"
    commands = {"make": "make setup", "pipx": "pipx reinstall pgdyno", "uv": "uv tool upgrade --reinstall pgdyno"}
    return f"run `{commands[_installer()]}`"


def how_to_add(extra: str) -> str:
    """A remedy: the command that adds the packages of an extra, as ``hosts`` of ``pgdyno[hosts]``."""
    if _installer() == "make":
        return "run `make setup`"
    install = {"pipx": "pipx install --force", "uv": "uv tool install --force", "pip": f"{_pip()} install"}
    return f"run `{install[_installer()]} 'FILE.whl[{extra}]'`, with pgdyno's wheel for FILE.whl"


def how_to_uninstall() -> str:
    """The command that removes the package itself."""
    uninstall = {"pipx": "pipx uninstall", "uv": "uv tool uninstall", "pip": f"{_pip()} uninstall"}
    return "remove the clone" if _installer() == "make" else f"run `{uninstall[_installer()]} pgdyno`"


def how_to_report() -> str:
    """A remedy for a bug: where to report it; the maker of the package may have said where its sources are."""
    import importlib.metadata  # a tenth of a second of CPU, and seldom needed

    try:
        addresses = importlib.metadata.metadata("pgdyno").get_all("Project-URL", [])
    except importlib.metadata.PackageNotFoundError:
        addresses = []
    repository = dict(address.split(", ", 1) for address in addresses).get("Repository")
    where = "where you got pgdyno" if repository is None else f"at {repository}/issues"
    return f"report it {where}, with the lines above"


def how_to_run_as_root(arguments: Sequence[str] | None = None) -> str:
    """A remedy: the command line that runs this pgdyno as root, by default with the arguments of this process.

    It has the absolute path, as root's PATH lacks what pipx, uv and pip put below a home directory, and keeps pgdyno's
    environment variables. An argument with a password is not repeated. Where there is no sudo, as in a container, none is named.
    """
    own = _own_command()
    if own is None:
        return "run it as root, for example with sudo"
    settings = ",".join(sorted(name for name in os.environ if name.startswith("PGDYNO_")))
    has_sudo = shutil.which("sudo") is not None
    start = ["sudo", *([f"--preserve-env={settings}"] if settings else []), *own] if has_sudo else own
    as_root = "" if has_sudo or os.geteuid() == 0 else " as root; in a container pass `--user root`"
    words = list(sys.argv[1:] if arguments is None else arguments)
    if any(_SECRET.search(word) for word in words):
        return f"run `{shlex.join(start)}` with the same arguments{as_root}"
    return f"run `{shlex.join([*start, *words])}`{as_root}"


def _own_command() -> list[str] | None:
    """The words that start this pgdyno from any directory and any PATH; ``None`` where another program uses the package."""
    started = Path(sys.argv[0])
    if started.name == "pgdyno":
        return [str(started.absolute())]
    if started.name == "__main__.py" and started.absolute().parent == _build.PACKAGE:
        return [sys.executable, "-m", "pgdyno"]
    return None
