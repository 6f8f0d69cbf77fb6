"""Keeps the engine's log in ours, without what is no news."""

from __future__ import annotations

import logging

# Said of every workflow that is interrupted by a stop or a cancel, which is what was asked for.
_EXPECTED = (
    "Asyncio task cancelled",
    "is no longer owned by this execution",
    "was cancelled during execution",
)


class _News(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not any(known in record.getMessage() for known in _EXPECTED)


def quiet_engine_log() -> None:
    """Send the engine's warnings through our logging instead of straight to the terminal. Safe to call again."""
    logger = logging.getLogger("dbos")
    if not any(isinstance(known, _News) for known in logger.filters):
        logger.addFilter(_News())
    if not logger.handlers:
        # With a handler present, the engine does not add its own for the console.
        logger.addHandler(logging.NullHandler())
    logger.propagate = True
