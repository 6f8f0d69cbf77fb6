"""Google's error responses as Annabelle errors, and when to retry."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from annabelle.core.backoff import backoff_seconds
from annabelle.core.errors import (
    AnnabelleError,
    Conflict,
    InvalidArguments,
    NotAllowed,
    NotFound,
    TooLarge,
    TooManyRequests,
    Unavailable,
)
from annabelle.core.tools import JsonObject
from annabelle.servers.kit.json_access import get_object, get_objects, get_text

_RATE_REASONS = {"rateLimitExceeded", "userRateLimitExceeded"}
_SAID_CHARS = 200


@dataclass(frozen=True, slots=True)
class GoogleRetry:
    tries: int = 4
    first: float = 0.5
    longest: float = 20.0

    async def wait(self, attempt: int, retry_after: str | None) -> bool:
        """Wait as the server asks, or with exponential backoff. Returns False at once if that is too long."""
        asked = parse_retry_after(retry_after)
        if asked is not None and asked > self.longest:
            return False
        await asyncio.sleep(asked if asked is not None else backoff_seconds(attempt, self.first, self.longest, 0.25))
        return True


def parse_retry_after(retry_after: str | None) -> float | None:
    """Parse a Retry-After header, a number of seconds or a date."""
    if not retry_after:
        return None
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        at = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (at.replace(tzinfo=at.tzinfo or UTC) - datetime.now(UTC)).total_seconds())


def is_retryable(status: int, body: JsonObject) -> bool:
    return status == 429 or status >= 500 or (status == 403 and bool(read_reasons(body) & _RATE_REASONS))


def to_error(status: int, body: JsonObject, retry_after: str | None = None) -> AnnabelleError:
    if status == 429 or (status == 403 and read_reasons(body) & _RATE_REASONS):
        return TooManyRequests(
            "Google asks for fewer requests.",
            hint="Wait a moment and try again.",
            retry_after=parse_retry_after(retry_after) or 30.0,
        )
    if status == 403 and read_reasons(body) & {"insufficientPermissions", "ACCESS_TOKEN_SCOPE_INSUFFICIENT"}:
        return NotAllowed(
            "The connected Google account has not allowed this.", hint="Allow it: annabelle connect google"
        )
    if status == 403:
        return NotAllowed(f"Google does not allow this{quote_message(body)}.")
    if status in (404, 410):
        return NotFound("Google has nothing with this id.", hint="List first and use an id from there.")
    if status in (409, 412):
        return Conflict(f"Google refuses because of what is there already{quote_message(body)}.")
    if status == 413:
        return TooLarge("Google refuses this because it is too large.")
    if status >= 500:
        return Unavailable("Google has trouble answering.", hint="Try again in a moment.")
    return InvalidArguments(f"Google does not accept this{quote_message(body)}.")


def quote_message(body: JsonObject) -> str:
    """Google's message, shortened, as the end of a sentence; empty if there is none."""
    message = get_text(get_object(body, "error"), "message") or get_text(body, "error_description")
    words = " ".join(message.split())[:_SAID_CHARS].rstrip(".")
    return f": {words}" if words else ""


def read_reasons(body: JsonObject) -> set[str]:
    error = get_object(body, "error")
    entries = [*get_objects(error, "errors"), *get_objects(error, "details")]
    return {reason for entry in entries if (reason := get_text(entry, "reason"))}
