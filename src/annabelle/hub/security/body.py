"""A bound on request bodies that also holds when the client does not announce the size."""

from __future__ import annotations

from starlette.types import Message, Receive

from annabelle.core.errors import TooLarge


def _too_large(limit: int) -> TooLarge:
    return TooLarge(
        f"The request body is larger than {limit} bytes.", hint="Send less, or raise ANNABELLE_MAX_BODY_BYTES."
    )


def check_announced(length: bytes | None, limit: int) -> None:
    if length is not None and length.isdigit() and int(length) > limit:
        raise _too_large(limit)


def bounded(receive: Receive, limit: int) -> Receive:
    """The same body, cut off with an error as soon as it grows over the limit."""
    seen = 0

    async def counted() -> Message:
        nonlocal seen
        message = await receive()
        if message["type"] == "http.request":
            seen += len(message.get("body", b""))
            if seen > limit:
                raise _too_large(limit)
        return message

    return counted
