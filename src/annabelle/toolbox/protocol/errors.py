"""What can go wrong on the wire to a server, before anyone has decided what it means for the caller."""

from __future__ import annotations


class WireTrouble(Exception):
    """Base of everything that goes wrong between hub and server."""


class ConnectionLost(WireTrouble):
    """The server is gone. `sent` tells whether the request may have reached it."""

    def __init__(self, reason: str, *, sent: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent


class RpcError(WireTrouble):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: object = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class AnswerTooLarge(WireTrouble):
    """The server's answer was larger than one message may be, and was dropped while it came in."""

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(f"the answer had {size} bytes, more than the {limit} that are read")
        self.size = size
        self.limit = limit


class NotSpeaking(WireTrouble):
    """The server answers, but not in a protocol revision we share."""
