"""What is wrong with an experiment file is said with file, line, key and what was probably meant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pgdyno.base.errors import InputError
from pgdyno.experiment.file import parse_assignment, read_experiment
from tests.experiment.documents import FILE, written

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
REAL = 'schema_version = 1\n[world]\nkind = "real"\n'


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("clients", "clinets", "trial.toml:9: workload.clinets: there is no such key; did you mean `clients`?"),
        ("memory", "memroy", "trial.toml:5: instance.memroy: there is no such key; did you mean `memory`?"),
        ("[instance]", "[instanc]", "trial.toml:4: instanc: there is no such key; did you mean `instance`?"),
        ('"128MiB"', "128", "trial.toml:5: instance.memory: 128 has no unit; write it as 512MiB"),
        ('"128MiB"', '"128MB"', "trial.toml:5: instance.memory: `128MB` is not understood"),
        ('"128MiB"', '"8MiB"', "trial.toml:5: instance.memory: PostgreSQL needs at least 64MiB"),
        (
            "clients = 4",
            "clients = 0",
            "trial.toml:9: workload.clients: it should be 1 or more, not 0",
        ),
        ("clients = 4", "threads = 9", "trial.toml:9: workload.threads: 9 threads for 8 clients"),
        ("clients = 4", 'script = "tpcc"', "trial.toml:9: workload.script: there is no script 'tpcc'"),
        ('"2s"', '"0s"', 'trial.toml:11: workload.duration: it should be 2 or more, not "0s"'),
        ('"world.volume"', '"world.volum"', 'trial.toml:14: factors."world.volum": an experiment has no key'),
        ('"world.volume"', '"seed"', "trial.toml:14: factors.seed: a factor is a key of world, instance"),
        ('["gp3", "io2bx"]', "[]", 'trial.toml:14: factors."world.volume": '),
        ("clients = 4", "rate_per_s = inf", "trial.toml:9: workload.rate_per_s: it should be a finite number, not inf"),
        ("scale = 2", "data_to_memory = inf", "trial.toml:8: workload.data_to_memory: it should be a finite number"),
        ("[workload]", "[client]\nrtt_ms = nan\n[workload]", "trial.toml:8: client.rtt_ms: it should be a finite"),
        ("schema_version = 1\n", "", "trial.toml:1: schema_version = 1 is missing"),
        ("replicates = 2", "replicates = true", "trial.toml:2: replicates: it should be a number, not true"),
        ("clients = 4", "full_check = 1", "trial.toml:9: workload.full_check: it should be true or false, not 1"),
        ("clients = 4", "clients = 1.5", "trial.toml:9: workload.clients: it should be a whole number, not 1.5"),
        ("clients = 4", 'clients = "x"', 'trial.toml:9: workload.clients: it should be a whole number, not "x"'),
        ("scale = 2", "scale = 1e300", "trial.toml:8: workload.scale: it should be a smaller number"),
        ('["gp3", "io2bx"]', "[]", 'world.volume": it should have at least 1 element'),
        ('["gp3", "io2bx"]', "4", 'world.volume": it should be a list, as [1, 2], not 4'),
        (
            '"world.volume" =',
            '"workload.clients" = [1, true]\n"world.volume" =',
            'clients"[2]: it should be a number, not true',
        ),
        ("schema_version = 1", "schema_version = 2", "trial.toml:1: schema_version: it should be 1, not 2"),
        ("replicates = 2", "replicates = 2 3", "at line 2"),
        (
            "[instance]",
            '[world]\nvolumes = { wals = "gp3" }\n[instance]',
            "trial.toml:5: world.volumes: a volume cannot",
        ),
        ("[instance]", "[world]\nvolumes.data = 'gp3'\n[instance]", "are the same; use one of them"),
        ("[instance]", '[world]\ndsn = "host=x"\n[instance]', 'trial.toml:5: world.dsn: dsn is for kind = "real"'),
        ("[factors]", '[factors]\n"world.file_system" = ["ext4",\n "zfs"]', 'world.file_system"[2]: it should be'),
        ("[factors]", '[factors]\n"workload.threads" = [1, 9]', 'trial.toml:14: factors."workload.threads"[2]: 9 thr'),
        (
            "[factors]",
            '[factors]\n"workload.clients" = [1, 1]',
            'trial.toml:14: factors."workload.clients"[2]: 1 appears twice',
        ),
    ],
)
def test_a_mistake_is_named(old: str, new: str, said: str, tmp_path: Path) -> None:
    assert FILE.count(old) >= 1
    with pytest.raises(InputError) as raises:
        written(tmp_path, FILE.replace(old, new, 1))
    assert said in raises.value.message
    assert str(tmp_path) in raises.value.message
    assert raises.value.remedy


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("", 'trial.toml:2: world: kind = "real" needs a dsn'),
        ('dsn = "host=db password=hush"\n', "trial.toml:4: world.dsn: a password does not belong in a file"),
        ('dsn = "postgresql://me:hush@db/app"\n', "trial.toml:4: world.dsn: a password does not belong in a file"),
        ('dsn = "hush hush"\n', "trial.toml:4: world.dsn: dsn is not a connection string"),
        ('dsn = "host=db"\nvolume = "gp3"\n', 'trial.toml:5: world.volume: it cannot be chosen with kind = "real"'),
        (
            'dsn = "host=db"\ncpus_awake = true\n',
            'trial.toml:5: world.cpus_awake: it cannot be chosen with kind = "real"',
        ),
        ('dsn = "host=db"\n[postgres]\nsettings = "tuned"\n', "trial.toml:6: postgres.settings: an existing server"),
        ('dsn = "host=db"\n[instance]\nmemory = "1GiB"\n', "trial.toml:6: instance.memory: an existing server"),
    ],
)
def test_a_real_server_is_neither_made_nor_set_and_its_password_is_not_here(
    more: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError) as raises:
        written(tmp_path, REAL + more)
    assert said in raises.value.message
    assert "hush" not in raises.value.message + raises.value.remedy


@pytest.mark.parametrize("assignment", ["world.dsn=host=db password=hush", 'world={kind="real",dsn="password=hush"}'])
def test_a_password_on_the_command_line_is_refused_and_not_repeated(assignment: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a password does not belong in a file") as raises:
        written(tmp_path, REAL, assignment)
    assert raises.value.message.startswith(f"--set {assignment.partition('=')[0]}=...: ")
    assert "hush" not in raises.value.message + raises.value.remedy


@pytest.mark.parametrize(
    ("stem", "name"),
    [("gp3 (copy)", "gp3 -copy-"), ("größer", "gr-er"), ("._x", "x"), ("n" * 61, "n" * 60), ("比較", "run")],
)
def test_a_file_may_be_called_as_its_owner_likes(stem: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / f"{stem}.toml"
    path.write_text(FILE)
    assert read_experiment(path).name == name


def test_what_the_command_line_sets_wins_and_is_named(tmp_path: Path) -> None:
    set_here = (
        "workload.duration=5s",
        "workload.clients=2",
        'factors.world.volume=["gp3"]',
        "postgres.parameters.jit=off",
    )
    result = written(tmp_path, FILE, *set_here)
    assert [arm.label for arm in result.arms] == ["gp3"]
    arm = result.arms[0]
    assert (arm.workload.measure_s, arm.workload.clients, arm.postgres.parameters) == (5.0, 2, {"jit": "off"})
    with pytest.raises(InputError, match=r"^--set workload.clients=0: workload.clients: it should be"):
        written(tmp_path, FILE, "workload.clients=0")
    with pytest.raises(InputError, match=r"did you mean `clients`\?"):
        written(tmp_path, FILE, "workload.client=1")
    flags = {"seed": ("--seed", -1)}
    with pytest.raises(InputError, match=r"^--seed: it should be"):
        read_experiment(tmp_path / "trial.toml", flags=flags)


@pytest.mark.parametrize("assignment", ["world.volume=gp2", "workload.bulk.order=parallel", "world.volumes.wal=gp2"])
def test_what_a_factor_sets_is_not_set_in_vain(assignment: str, tmp_path: Path) -> None:
    """The arms are the factor's, whatever its key is set to: a user would take gp3 for gp2."""
    key = assignment.partition("=")[0]
    factor = "world.volumes" if key.startswith("world.volumes.") else key
    text = FILE.replace('"world.volume"', f'"{factor}"')
    with pytest.raises(InputError) as raises:
        written(tmp_path, text, assignment)
    assert raises.value.message.startswith(f"--set {assignment}: {factor} is a factor")
    assert f"--set 'factors.{factor}=[" in raises.value.remedy


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("workload.scale=3", ("workload", "scale"), 3),
        ("world.volume=gp3:iops=6000", ("world", "volume"), "gp3:iops=6000"),
        ("world.volumes.tablespace.fast=io2bx", ("world", "volumes", "tablespace.fast"), "io2bx"),
        ("postgres.bin=", ("postgres", "bin"), ""),
        ('factors."world.volume"=["gp2"]', ("factors", "world.volume"), ["gp2"]),
        (
            "postgres.parameters.'auto_explain.log_analyze'=on",
            ("postgres", "parameters", "auto_explain.log_analyze"),
            "on",
        ),
        ('world.volumes={ data = "gp3" }', ("world", "volumes"), {"data": "gp3"}),
    ],
)
def test_an_assignment_is_a_path_and_a_value(text: str, path: tuple[str, ...], value: object) -> None:
    assert parse_assignment(text) == (path, value)


def test_what_the_header_of_an_experiment_says_to_set_can_be_set() -> None:
    assignments = []
    for path in sorted(EXPERIMENTS.glob("*.toml")):
        header = " ".join(line[1:] for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
        words = [quoted or plain.rstrip(".,;)") for quoted, plain in re.findall(r"--set (?:'([^']*)'|(\S+))", header)]
        read_experiment(path, words)
        assignments += words
    assert 'factors."world.volume"=["gp2:size=100GiB"]' in assignments


def test_a_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_experiment(tmp_path / "none.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="not UTF-8"):
        read_experiment(tmp_path / "binary.toml")


def test_another_service_is_another_server(tmp_path: Path) -> None:
    """Of a connection string only what names the server is recorded; a service names one."""
    result, other = (
        written(tmp_path, f'schema_version = 1\n[world]\nkind = "real"\ndsn = "service={name}"\n')
        for name in ("bank", "shop")
    )
    assert result.identity() != other.identity()
    assert result.settings()["world"]["dsn"] == "service=bank"
