"""Writes the steps of one execution down, and waits a while for a database in trouble."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Final

from sqlalchemy.exc import DBAPIError

from annabelle.core.tools import JsonObject
from annabelle.durable.book import Book, Execution
from annabelle.store.trouble import Place, describe

_log = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 30.0
FIRST_WAIT_SECONDS: Final = 0.2
LONGEST_WAIT_SECONDS: Final = 5.0


class Recorder:
    """What a Run records with. A step that can not be written down is as good as not done: the run is interrupted."""

    def __init__(
        self, book: Book, threads: Executor, execution: Execution, place: Place, interrupt: Callable[[str], None]
    ) -> None:
        self._book, self._threads, self._execution = book, threads, execution
        self._place, self._interrupt = place, interrupt

    async def __call__(self, number: int, key: str, outcome: JsonObject, started_ms: int) -> None:
        loop = asyncio.get_running_loop()
        end, wait = loop.time() + PATIENCE_SECONDS, FIRST_WAIT_SECONDS
        while True:
            try:
                await loop.run_in_executor(
                    self._threads, self._book.record, self._execution, number, key, outcome, started_ms
                )
                return
            except DBAPIError as error:
                trouble = describe(error, self._place)
                if trouble is None:
                    raise
                if loop.time() + wait > end:
                    _log.error("%s: %s", self._execution.workflow_id, trouble.message)
                    self._interrupt(self._execution.workflow_id)
                    raise asyncio.CancelledError from error
                _log.warning("%s is not written down yet: %s", key, trouble.message)
            await asyncio.sleep(wait)
            wait = min(2 * wait, LONGEST_WAIT_SECONDS)
