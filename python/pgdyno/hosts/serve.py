"""Dask's own scheduler and worker, until a signal: TLS with certificates on both sides, one port each, no HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import signal
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from ..base.errors import HostError
from ..machine.scratch import scratch_directory
from . import dask
from .certificates import Identity
from .dask import HostAddress

_REGISTER_S = 60.0
"""A worker may be started before its scheduler, by this time at most."""
_LOOK_S = 2.0
"""How long it is looked for before."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def scheduler(identity: Identity, listen: HostAddress, output: Callable[[str], None]) -> None:
    """Serve until a signal comes. ``said`` gets the address."""
    distributed, security = dask.distributed(), identity.security()

    def make() -> Any:
        return _without_http(distributed.Scheduler)(
            host=listen.host, port=listen.port, protocol="tls", security=security, dashboard=False
        )

    asyncio.run(_serve(make, output, f"the scheduler cannot listen on {listen.url}"))


def worker(identity: Identity, to: HostAddress, listen: HostAddress, output: Callable[[str], None]) -> None:
    """Serve the scheduler ``to``, one task at a time, until a signal comes or the scheduler ends. ``said`` gets the address."""
    distributed, security = dask.distributed(), identity.security()
    with scratch_directory(Path(tempfile.gettempdir())) as scratch:

        def make() -> Any:
            return _without_http(distributed.Worker)(
                to.url,
                nthreads=1,
                name=identity.name,
                host=listen.host,
                port=listen.port,
                protocol="tls",
                security=security,
                dashboard=False,
                memory_limit=0,
                death_timeout=_REGISTER_S,
                local_directory=str(scratch),
            )

        failed = f"no worker between {listen.url} and the scheduler {to.url}"
        asyncio.run(_serve(make, output, failed, lambda: _require_authority(security, to)))


def _without_http(kind: Any) -> Any:
    """A server of Dask without its HTTP routes, which have no authentication beside TLS (distributed#6407)."""
    return type(kind.__name__, (kind,), {"start_http_server": lambda *_, **__: None})


async def _require_authority(security: Any, to: HostAddress) -> None:
    """A worker tries for a minute to reach its scheduler; one of another authority it will never reach."""
    comm = importlib.import_module("distributed.comm.core")
    try:
        result = await comm.connect(to.url, timeout=_LOOK_S, **security.get_connection_args("worker"))
    except comm.FatalCommClosedError as error:
        raise HostError(
            f"the scheduler {to.url} is not of this authority: {dask.reason(error)}",
            remedy="use a certificate of the authority that made the scheduler's",
        ) from None
    except OSError:
        return  # it may come
    await result.close()


async def _nothing() -> None:
    pass


async def _serve(
    make: Callable[[], Any],
    output: Callable[[str], None],
    failed: str,
    require: Callable[[], Awaitable[None]] = _nothing,
) -> None:
    await require()
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in _ENDING:
        loop.add_signal_handler(number, stopped.set)
    server = make()
    starting, stopping = asyncio.ensure_future(_started(server)), asyncio.ensure_future(stopped.wait())
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            starting.cancel()
            return
        try:
            await starting
        except (OSError, RuntimeError) as error:
            raise HostError(
                f"{failed}: {dask.reason(error)}", remedy="is it the right address, and of the same authority?"
            ) from None
        output(server.address)
        ended = asyncio.ensure_future(server.finished())
        await asyncio.wait({ended, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.is_set():
            raise HostError(f"{failed}: the connection ended", remedy="start it again; the scheduler's log says why")
    finally:
        stopping.cancel()
        with contextlib.suppress(OSError, RuntimeError):
            await server.close()


async def _started(server: Any) -> None:
    await server
