"""Starts a thinker process: waits as a warm spare for the hub's `ThinkerBoot`, then serves until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator, Mapping
from typing import NoReturn

import uvicorn
import uvloop
from pydantic import ValidationError
from pydantic_ai.messages import ModelMessagesTypeAdapter
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from annabelle.core.contract import ThinkerBoot
from annabelle.core.errors import AnnabelleError, ConfigMistake, first_problem
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import load_settings
from annabelle.core.trace import configure_logging
from annabelle.thinker.app import make_app
from annabelle.thinker.assembly import build_thinker
from annabelle.toolbox.process.kernel import die_with_parent


def watch_input(descriptor: int, on_closed: Callable[[], None]) -> None:
    """Call `on_closed` when standard input ends; its content is ignored."""
    loop = asyncio.get_running_loop()

    def on_readable() -> None:
        try:
            data = os.read(descriptor, 4096)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            loop.remove_reader(descriptor)
            on_closed()

    os.set_blocking(descriptor, False)
    loop.add_reader(descriptor, on_readable)


_HOST = "127.0.0.1"
# The hub kills what has not ended three seconds after it asked.
_MAX_GRACE_SECONDS = 1.5

_log = logging.getLogger(__name__)


class _ThinkerServer(uvicorn.Server):
    """Handles no signals: a stop lets steps end before it closes the server."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield


async def serve(boot: ThinkerBoot) -> None:
    """Run until stopped. Raises an `AnnabelleError` if the thinker cannot start."""
    home = Home.from_environment()
    settings = load_settings(home)
    if boot.agent.temporary:
        settings = settings.model_copy(update={"database_url": None})  # its data must be deleted with its folder
    redact = Redactor.from_environment()
    redact.learn([boot.secret])
    home.logs.mkdir(parents=True, exist_ok=True)
    configure_logging(f"thinker-{boot.agent.agent_id}", home.logs, settings.log_level, redact)
    thinker = await build_thinker(boot, home, settings, redact)

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    watch_input(sys.stdin.fileno(), stop.set)

    listener = _listen(boot.port)
    server = _ThinkerServer(
        uvicorn.Config(
            make_app(boot.secret, thinker),
            # The class, not its name, so that the warm spare has already imported the module.
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
    await thinker.open()
    _log.info("ready: agent %s, process %d", boot.agent.agent_id, os.getpid())

    stopping = asyncio.create_task(stop.wait())
    await asyncio.wait([serving, stopping], return_when=asyncio.FIRST_COMPLETED)
    await thinker.close(min(_MAX_GRACE_SECONDS, settings.annabelle_shutdown_grace_seconds))
    server.should_exit = True
    await asyncio.wait([serving], timeout=3)
    logging.shutdown()
    # Exit without cleanup: ending the turns that wait for the next process would record them as ended.
    os._exit(0)


def _listen(port: int) -> socket.socket:
    """Listen on the agent's port, or on any free one if it is taken."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((_HOST, port))
    except OSError:
        listener.bind((_HOST, 0))
    listener.listen(128)
    return listener


# Inherited besides what the hub passes.
_INHERITED_VARIABLES = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "ANNABELLE_HOME",
    "ANNABELLE_FAILPOINTS",
)
_MAX_LINE_BYTES = 4_000_000

# Built on first use, so use it now, before a message waits for it.
ModelMessagesTypeAdapter.dump_python([], mode="json")
ModelMessagesTypeAdapter.validate_python([])


def main() -> None:
    """Wait as a warm spare, then run as a thinker."""
    die_with_parent(os.getppid(), signal.SIGKILL)
    gc.collect()
    gc.freeze()  # the collector need not scan objects that stay
    line = _read_line(sys.stdin.fileno())
    if not line.strip():
        return
    try:
        boot = _parse_boot_line(line)
        replace_environment(boot.environment)
        uvloop.run(serve(boot))
    except AnnabelleError as error:
        _exit_with_error(error)
    except Exception as error:
        logging.getLogger(__name__).exception("the thinker cannot go on")
        _exit_with_error(AnnabelleError(f"The thinker failed unexpectedly: {type(error).__name__}: {error}."))


def _read_line(descriptor: int) -> bytes:
    """Read one line, unbuffered: `watch_input` reads the descriptor later."""
    line = bytearray()
    while not line.endswith(b"\n") and len(line) < _MAX_LINE_BYTES:
        chunk = os.read(descriptor, 65536)
        if not chunk:
            break
        line += chunk
    return bytes(line)


def _parse_boot_line(line: bytes) -> ThinkerBoot:
    try:
        return ThinkerBoot.model_validate_json(line)
    except ValidationError as error:
        place, reason = first_problem(error, "boot")
        raise ConfigMistake(f"{place} is not valid: {reason}.", field=place) from error


def replace_environment(given: Mapping[str, str]) -> None:
    """Replace the environment by what the hub passed and the few inherited variables."""
    kept = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
    os.environ.clear()
    os.environ.update({**kept, **given})


def _exit_with_error(error: AnnabelleError) -> NoReturn:
    """Print one line for the hub and exit with the error's exit code (THK-04)."""
    sys.stdout.write(json.dumps({"error": error.body().model_dump(exclude_none=True)}) + "\n")
    sys.stdout.flush()
    raise SystemExit(error.exit_code)
