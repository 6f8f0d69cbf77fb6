"""An adopted thinker from its first moment to its last: listen, open the mind, serve, stop cleanly."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import sys
from collections.abc import Generator

import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from annabelle.core.contract import ThinkerBoot
from annabelle.core.home import Home
from annabelle.core.logs import configure_logging
from annabelle.core.redact import Redactor
from annabelle.core.settings import load_settings
from annabelle.thinker.app import make_app
from annabelle.thinker.assembly import assemble
from annabelle.thinker.lifeline import watch_input

_HOST = "127.0.0.1"
# The hub kills what has not ended three seconds after it asked.
_LONGEST_GRACE_SECONDS = 1.5

_log = logging.getLogger(__name__)


class _Server(uvicorn.Server):
    """Signals are ours: a stop first lets steps end, and only then closes the server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(boot: ThinkerBoot) -> None:
    """Run until told to stop. Raises an `AnnabelleError` when the thinker can not begin."""
    home = Home.from_environment()
    settings = load_settings(home)
    if boot.agent.temporary:
        settings = settings.model_copy(update={"database_url": None})  # what it keeps must go with its folder
    redact = Redactor.from_environment()
    redact.learn([boot.secret])
    home.logs.mkdir(parents=True, exist_ok=True)
    configure_logging(f"thinker-{boot.agent.agent_id}", home.logs, settings.log_level, redact)
    mind = await assemble(boot, home, settings, redact)

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    watch_input(sys.stdin.fileno(), stop.set)

    listener = _listen(boot.port)
    server = _Server(
        uvicorn.Config(
            make_app(boot.secret, mind),
            # The class, not its name: the module is then imported in the warm spare, not at adoption.
            http=HttpToolsProtocol,
            ws="none",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=120,
            timeout_graceful_shutdown=1,
        )
    )
    serving = asyncio.create_task(server.serve([listener]))
    sys.stdout.write(f"LISTENING_PORT={listener.getsockname()[1]}\n")
    sys.stdout.flush()
    await mind.open()
    _log.info("ready: agent %s, process %d", boot.agent.agent_id, os.getpid())

    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    await mind.close(min(_LONGEST_GRACE_SECONDS, settings.annabelle_shutdown_grace_seconds))
    server.should_exit = True
    await asyncio.wait([serving], timeout=3)
    logging.shutdown()
    # Turns that wait for the next process are left as they stand: to end them here would be to record them as ended.
    os._exit(0)


def _listen(port: int) -> socket.socket:
    """The agent's port, or any free one when it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError:
        listener.bind((_HOST, 0))
    listener.listen(128)
    return listener
