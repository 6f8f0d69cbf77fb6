"""Shows what Annabelle says unasked, as a reminder, while a chat waits for the person to type."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from contextlib import aclosing

from annabelle.cli.hub_client import CliHubClient, ServerEvent
from annabelle.cli.output import clean
from annabelle.cli.terminal_input import LinePrompt
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import Home
from annabelle.core.messages import StoredEvent

_AGAIN_SECONDS = 1.0


class ChatNews:
    """Follows the person's events in a thread of its own, because the chat's waits for the keyboard."""

    def __init__(self, home: Home, prompt: LinePrompt) -> None:
        self._home, self._prompt = home, prompt
        self._loop: asyncio.AbstractEventLoop | None = None
        self._following: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._last_id: str | None = None
        self._stopped = threading.Event()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="chat-news", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        if self._loop is not None and self._following is not None:
            with contextlib.suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._following.cancel)
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        with asyncio.Runner() as runner, contextlib.suppress(asyncio.CancelledError):
            runner.run(self._begin())

    async def _begin(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._following = asyncio.current_task()
        while not self._stopped.is_set():
            with contextlib.suppress(AnnabelleError, OSError, ValueError):
                await self._follow()
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _follow(self) -> None:
        async with CliHubClient.for_home(self._home) as client, aclosing(client.events(None, self._last_id)) as events:
            async for event in events:
                self._last_id = event.id or self._last_id
                if (text := read_unasked(event)) is not None:
                    self._prompt.show_above(clean(text))


def read_unasked(event: ServerEvent) -> str | None:
    """The text of a message that answers nothing; None for any other event."""
    try:
        stored = StoredEvent.model_validate_json(event.data)
    except ValueError:
        return None
    if stored.type != "message" or stored.data.get("message_id") != stored.message_id:
        return None
    return str(stored.data.get("text") or "") or None
