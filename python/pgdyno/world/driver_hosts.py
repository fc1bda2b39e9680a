"""The hosts on which drivers of an experiment are started: what is refused before, and the connection during the runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pgdyno.base.errors import InputError
from pgdyno.experiment import Arm, Experiment
from pgdyno.hosts.connection import HostsFile
from pgdyno.workload.outcome import RemoteHost
from pgdyno.world.resolved import ResolvedArm


def require(experiment: Experiment, arms: Sequence[ResolvedArm], file: HostsFile | None) -> None:
    """Refuse hosts that no hosts file names, and a server that they cannot reach."""
    for resolved in arms:
        arm = resolved.arm
        key = ("client", "drivers")
        unknown = [name for name in arm.client.hosts if file is None or name not in file.drivers]
        if file is None and unknown:
            message = "the drivers are on other hosts, and nothing says where those are"
            raise experiment.error(arm, key, message, "add --drivers hosts.toml")
        if file is not None and unknown:
            message = f"{file.path} does not name {', '.join(unknown)}"
            raise experiment.error(arm, key, message, f"it has {', '.join(file.drivers)}")
        if file is None or not arm.client.hosts:
            continue
        if resolved.server is None and file.listen is None:
            raise InputError(
                f"{file.path}: listen is missing: PostgreSQL must be reached by other hosts",
                remedy='write listen = "10.0.0.1": an address of this machine that they reach',
            )
        if resolved.server is not None and str(resolved.server.endpoint.document["host"]).startswith(("/", "@")):
            with experiment.origin.explained(("world", "dsn")):
                raise InputError(
                    "other hosts cannot reach the server by a socket of this machine", remedy="write host=10.0.0.1"
                )


@contextlib.contextmanager
def connected(file: HostsFile | None, due: Iterable[Arm]) -> Iterator[Mapping[str, RemoteHost]]:
    """The hosts of the drivers of these arms, by name, for the length of a ``with`` block."""
    names = dict.fromkeys(name for arm in due for name in arm.client.hosts)
    if not names:
        yield {}
        return
    assert file is not None, "it was required"
    from pgdyno.hosts.connection import Connection

    with Connection(file) as connection:
        yield connection.drivers(names)
