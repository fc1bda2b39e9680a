"""``environment.md``: the variables that pgdyno looks at. A variable in the sources that is missing here is an error."""

from __future__ import annotations

import re
from pathlib import Path

from tools.reference import markdown as md

ROOT = Path(__file__).resolve().parents[2]

VARIABLES: dict[str, tuple[str, str]] = {
    "PGDYNO_RESULTS": ("`./results`", "Folder of the results. `--results` overrides it."),
    "PGDYNO_ENGINE": (
        "beside the package, or where the Python that runs has its programs",
        "The `pgdyno-engine` to use. It must be built from the sources of the package: both carry a hash of them.",
    ),
    "PGDYNO_STATE_DIR": (
        "`/run/pgdyno`",
        "State of attached volumes, and the journal for undoing. Commands with different values do not see each other's volumes.",
    ),
    "XDG_STATE_HOME": (
        "`~/.local/state`",
        "Where `pgdyno load` keeps the second copy of its undo journal, in `pgdyno/load`, unless `PGDYNO_STATE_DIR` is set.",
    ),
    "AWS_REGION": (
        "unset",
        "Region of the objects of `pgdyno load --via aws_s3`, unless `--s3-region` is given; takes precedence over `AWS_DEFAULT_REGION`.",
    ),
    "AWS_DEFAULT_REGION": ("unset", "The same, where `AWS_REGION` is not set."),
    "PGDYNO_TEST_PANIC": (
        "unset",
        "For pgdyno's own tests: a volume's daemon that is attached with it can be asked to panic, which ends it.",
    ),
    "HAMMERDB_HOME": (
        "unset",
        'Folder of an installed HammerDB, which has `hammerdbcli` in it: it drives where a workload of kind `tpcc` or `tpch` has `engine = "hammerdb"`.',
    ),
    "PGDYNO_IMAGE_DIR": (
        "`/dev/shm/pgdyno/images`",
        "Folder of the data sets while an experiment runs; by default in memory.",
    ),
    "PGDYNO_DATABASE_DIR": (
        "`/var/lib/pgdyno/databases`",
        "Folder of databases that are kept (`pgdyno data add`); only root reads it.",
    ),
    "PGDYNO_POSTGRES_DIR": (
        "`/var/lib/pgdyno`",
        "Where the embedded PostgreSQL is copied to, so that its user can run it.",
    ),
    "PGDYNO_POSTGRES_USER": (
        "`postgres`, else `nobody`",
        "The user that PostgreSQL runs as when pgdyno runs as root (PostgreSQL refuses to run as root).",
    ),
    "SUDO_UID": (
        "unset",
        "Set by sudo, with `SUDO_GID`: results and reports that root writes belong to this user.",
    ),
    "NO_COLOR": (
        "unset",
        "If it is set, output has no colours. With `TERM=dumb` there are no colours and no progress bars, either.",
    ),
}
"""Name -> (what holds without it, meaning)."""

INTERNAL = {"PGDYNO_COMPLETE", "PGDYNO_BUILD_HASH", "PGDYNO_FUZZ_S"}
"""Between the shell and click, between cargo and the engine that it builds, and of tests in Rust: for how many seconds they fuzz."""

INTRODUCTION = """
Environment variables that pgdyno uses. Those of PostgreSQL's own programs (`PGHOST`, `PGPASSFILE`,
`PGSERVICEFILE` ...) apply to an existing server, and never to those that pgdyno starts. Those of boto3 (`AWS_PROFILE`,
`AWS_ENDPOINT_URL` ...) apply to `s3://`, `HTTPS_PROXY`, `NO_PROXY` and `SSL_CERT_FILE` for `https://`.
"""


def page() -> str:
    """The text of the page."""
    unknown = sorted(_in_sources() ^ {name for name in VARIABLES if name.startswith("PGDYNO_")})
    if unknown:
        raise SystemExit(
            f"tools/reference/environment.py must describe exactly what the sources use: {', '.join(unknown)}"
        )
    rows = [[md.code(name), default, meaning] for name, (default, meaning) in VARIABLES.items()]
    table = md.table(["variable", "without it", "meaning"], rows)
    return md.page("Environment", "`tools/reference/environment.py`", INTRODUCTION, table)


def _in_sources() -> set[str]:
    files = [*(ROOT / "python").rglob("*.py"), *(ROOT / "crates").glob("*/src/**/*.rs")]
    results = {name for path in files for name in re.findall(r"\bPGDYNO_[A-Z_]+\b", path.read_text(encoding="utf-8"))}
    return {name for name in results if name not in INTERNAL}
