"""``pgdyno hosts``: certificates, the scheduler and the workers of a load that several hosts drive."""

from __future__ import annotations

from pathlib import Path

import click

from pgdyno.cli import parameters

from .terminal import print_json

_KEYS = click.option(
    "--keys",
    required=True,
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="Directory with authority.crt, and the certificate and private key of this host.",
)


@click.group()
def command() -> None:
    """Let other hosts drive a load: certificates, scheduler, workers.

    A private key that `pgdyno hosts keys` made can run any program on every worker, as the user who started it: keep it safe.
    Every connection uses TLS, and both sides check that the certificate of the other is from the same authority.

    \b
    Example:
      pgdyno hosts keys --out keys --name delta
      pgdyno hosts scheduler --keys keys --listen 10.0.0.5
    """


@command.command()
@click.option(
    "--out", required=True, metavar="DIR", type=click.Path(file_okay=False, path_type=Path), help="Where to write them."
)
@click.option("--name", "names", metavar="HOST", multiple=True, help="Name of a worker; repeatable.")
@click.option("--days", type=parameters.Integer(min=1), default=365, show_default=True, help="How long they are valid.")
@click.option("--json", "as_json", is_flag=True, help="Print the paths as one JSON document.")
def keys(out: Path, names: tuple[str, ...], days: int, as_json: bool) -> None:
    """Make an authority and certificates.

    There is a certificate for the scheduler, one for `pgdyno run` (coordinator), and one for each worker. If DIR already has an
    authority, only the workers' certificates are made. Only you can read the private keys. A worker's host needs
    authority.crt and its own two files. Keep authority.key where no host can read it: it makes certificates.

    \b
    Example:
      pgdyno hosts keys --out keys --name alpha --name beta
      pgdyno hosts keys --out keys --name gamma
    """
    from ..base.errors import InputError
    from ..hosts import certificates

    own = () if (out / f"{certificates.AUTHORITY}.key").exists() else (certificates.SCHEDULER, certificates.COORDINATOR)
    if not own and not names:
        raise InputError(f"{out} has an authority", remedy="name a worker with --name, or another directory")
    written = [str(path) for path in certificates.make(out, (*own, *names), days)]
    if as_json:
        print_json({"written": written})
        return
    for path in written:
        click.echo(path)


@command.command()
@_KEYS
@click.option(
    "--listen", required=True, metavar="ADDRESS[:PORT]", help="Address of one interface; port 8786 by default."
)
def scheduler(keys: Path, listen: str) -> None:
    """Start the scheduler, to which workers and `pgdyno run` connect. It serves until Ctrl-C or SIGTERM.

    It is Dask's, with no dashboard and no HTTP. It listens on one port.

    \b
    Example:
      pgdyno hosts scheduler --keys keys --listen 10.0.0.5
    """
    from ..hosts import dask, serve
    from ..hosts.certificates import SCHEDULER, Identity

    at = dask.to_listen(listen, dask.SCHEDULER_PORT)
    serve.scheduler(Identity(keys, SCHEDULER), at, lambda url: click.echo(f"scheduler at {url}"))


@command.command()
@click.argument("scheduler", metavar="tls://HOST:PORT")
@_KEYS
@click.option("--name", required=True, metavar="HOST", help="Name of this host; its certificate is HOST.crt.")
@click.option(
    "--listen", required=True, metavar="ADDRESS[:PORT]", help="Address of one interface; port 8788 by default."
)
def worker(scheduler: str, keys: Path, name: str, listen: str) -> None:
    """Start a worker, so that this host drives loads for `pgdyno run`. It serves until Ctrl-C, SIGTERM or the scheduler's end.

    It is Dask's, with one task at a time, no dashboard and no HTTP. It listens on one port, to which pgdyno run connects. It needs no
    root; start it as a user who may do little else.

    \b
    Example:
      pgdyno hosts worker tls://10.0.0.5:8786 --keys keys --name alpha --listen 10.0.0.11
    """
    from ..hosts import dask, serve
    from ..hosts.certificates import Identity

    to = dask.of_scheduler(scheduler, "the scheduler")
    at = dask.to_listen(listen, dask.WORKER_PORT)
    serve.worker(Identity(keys, name), to, at, lambda url: click.echo(f"worker {name} at {url}"))
