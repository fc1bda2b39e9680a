"""A command line of every command, so that what holds for all of them can be shown of each.

A command that is new stands in one of the tables here, or :mod:`tests.cli.test_world` fails.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import click

from pgdyno.base import engine
from pgdyno.cli.main import cli
from tests.analysis.synthetic import Plan, make_experiment
from tests.size import formats
from tools.reference.cli import contexts

POLICY = """\
schema_version = 1

[[schedule]]
every = "24h"
keep = 7
"""

LOG = Path(__file__).parents[1] / "capture" / "files" / "shop.csv"
LOAD = [formats.Interval(2000, 1000, 16000, 8000)] * 30
FILE = """\
schema_version = 1

[world]
volume = "gp3"
"""

QUICK = {
    "capture read": "capture read {folder}/shop.csv --output {folder}/captures/{{pid}}",
    "capture show": "capture show {folder}/shop.capture",
    "doctor": "doctor",
    "run": "run {folder}/experiment.toml --dry-run",
    "volume list": "volume list",
    "volume policy": "volume policy {folder}/policy.toml --dry-run 30d --from 2026-11-01",
    "volume snapshots": "volume snapshots",
    "catalog volumes": "catalog volumes",
    "data list": "data list --json",
    "hosts keys": "hosts keys --out {folder}/keys/{{pid}} --name alpha",
    "data generate imdb": "data generate imdb --scale 0.00001 --out {folder}/imdb/{{pid}} --threads 1",
    "data generate tpch": "data generate tpch --scale 0.001 --out {folder}/tpch/{{pid}} --threads 1",
    "metrics cloudwatch": "metrics cloudwatch {run}",
    "metrics names": "metrics names",
    "catalog show": "catalog show r6g.large",
    "catalog instances": "catalog instances",
    "size": "size --iostat {folder}/load.txt --size 100GiB --type gp3",
    "runs": "runs --results {results}",
    "query": "query SELECT(1) --results {results}",
    "report": "report {experiment} --format md",
    "reproduce": "reproduce io2 --from {results}",
    "show completion": "show completion bash",
    "show examples": "show examples",
    "show schema": "show schema experiment",
    "show dashboards": "show dashboards",
}
"""Commands that print something and change nothing that needs root or a server: by name, words with places to fill in."""
SILENT = {"volume list", "volume snapshots"}
"""Those that have nothing to print here."""

ROOT = {
    "demo": "demo -n 1 -s 1 --warmup 1s --duration 1s",
    "compare": "compare gp3 null -n 1 -s 1 --warmup 1s --duration 1s",
    "run": "run {folder}/experiment.toml",
    "crashtest": "crashtest --cuts 2 --seconds 1 --results {folder}/cut",
    "data add": "data add {folder}/select.sql --name {name}",
    "data remove": "data remove {name} --yes",
    "volume attach": "volume attach null:size=1GiB --no-mount --name {name}",
    "volume detach": "volume detach {name}",
    "volume fail NAME error": "volume fail {name} error --once",
    "volume fail NAME latency": "volume fail {name} latency --add 500ms",
    "volume fail NAME lose": "volume fail {name} lose",
    "volume fail NAME pause": "volume fail {name} pause",
    "volume fit": "volume fit {folder} -o {folder}/twin.toml",
    "volume heal": "volume heal {name}",
    "volume mark": "volume mark {name} here",
    "volume restore": "volume restore {name} --no-mount",
    "volume snapshot archive": "volume snapshot archive {name}",
    "volume snapshot copy": "volume snapshot copy {name} --region eu-west-1",
    "volume snapshot delete": "volume snapshot delete {name}",
    "volume snapshot fsr": "volume snapshot fsr {name}",
    "volume snapshot take": "volume snapshot {name}",
    "volume snapshot unarchive": "volume snapshot unarchive {name}",
    "volume modify": "volume modify {name} null:size=2GiB",
    "volume stats": "volume stats {name}",
    "metrics nvme": "metrics nvme {name}",
}
"""Commands that mount, attach or ask a volume."""

SERVER = {
    "capture plan": "capture plan {dsn}",
    "capture record": "capture record --listen 127.0.0.1:0 --to {dsn} --output {folder}/recorded.capture",
    "capture replay": "capture replay {folder}/shop.capture --dsn {dsn} --yes-write --allow-outside role:postgres",
    "capture stats": "capture stats {dsn}",
    "diagnose": "diagnose {dsn} --for 1s --keep {folder}/kept",
    "drive": "drive --dsn {dsn} --duration 1s -c 1 {folder}/select.sql",
    "hosts scheduler": "hosts scheduler --keys {folder} --listen 127.0.0.1:0",
    "hosts worker": "hosts worker tls://127.0.0.1:1 --keys {folder} --name alpha --listen 127.0.0.1:0",
    "load": "load {folder}/rows.csv --into {dsn} --table rows",
    "metrics serve": "metrics serve --port 0",
}
"""Commands that need a server of PostgreSQL, or are one."""


@dataclass(frozen=True)
class Places:
    """What the command lines speak of."""

    folder: Path
    experiment: Path

    def words(self, text: str, **more: str) -> list[str]:
        """The words of a command line with its places filled in."""
        run = next((self.experiment / "runs").iterdir())
        places = {"folder": self.folder, "experiment": self.experiment, "results": self.experiment.parent, "run": run}
        return [word.format(**{"name": "no-such", "dsn": "port=1"} | places | more) for word in text.split()]

    def quick(self) -> dict[str, list[str]]:
        """Each command that is quick."""
        return {name: self.words(text) for name, text in QUICK.items()}

    def quick_json(self) -> dict[str, list[str]]:
        """The same with ``--json``, where they have that."""
        return {
            f"{name} --json": [*words, "--json"]
            for name, words in self.quick().items()
            if "--json" in options(name) and "--format" not in words
        }


def make_places(folder: Path) -> Places:
    """The files that the command lines read."""
    (folder / "load.txt").write_text(formats.iostat_12_7(LOAD, 1))
    (folder / "experiment.toml").write_text(FILE)
    (folder / "policy.toml").write_text(POLICY)
    (folder / "select.sql").write_text("SELECT 1;\n")
    (folder / "rows.csv").write_text("id,v\n1,a\n2,b\n")
    (folder / "captures").mkdir()
    shutil.copy(LOG, folder)
    for _ in engine.lines(
        ["capture", "read"], {"logs": [str(LOG)], "output": str(folder / "shop.capture"), "prefix": None}
    ):
        pass
    return Places(folder, make_experiment(folder / "results", Plan(replicates=1)))


def leaves() -> dict[str, click.Command]:
    """Every command that is no group, by its name."""
    result = contexts(click.Context(cli, info_name="pgdyno"))
    return {
        context.command_path.removeprefix("pgdyno "): context.command
        for context in result
        if not isinstance(context.command, click.Group)
    }


def options(name: str) -> set[str]:
    """The options of a command."""
    return {option for parameter in leaves()[name].params for option in parameter.opts}
