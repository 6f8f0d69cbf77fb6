"""Translates Telethon's errors into ours."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from typing import cast

from telethon import errors

from annabelle.core.errors import (
    AnnabelleError,
    InvalidArguments,
    NotAllowed,
    NotFound,
    OutcomeUnknown,
    TooManyRequests,
    Unavailable,
)
from annabelle.servers.telegram.api import SignedOut

FIND = "list_chats shows chats with their ids, search_users finds people."
_SIGNED_OUT = (errors.UnauthorizedError, errors.AuthKeyError)
_NO_SUCH_CHAT = (
    errors.PeerIdInvalidError,
    errors.UsernameInvalidError,
    errors.UsernameNotOccupiedError,
    errors.ChatIdInvalidError,
    errors.ChannelInvalidError,
    errors.UserIdInvalidError,
    errors.InputUserDeactivatedError,
)
_NOT_OURS = (errors.ForbiddenError, errors.ChannelPrivateError, errors.ChatAdminRequiredError)
_REFUSALS: dict[type[errors.RPCError], str] = {
    errors.PeerFloodError: "Telegram limits this account for now, because it wrote to too many strangers.",
    errors.UserIsBlockedError: "This person has blocked the account.",
    errors.YouBlockedUserError: "The account has blocked this person.",
    errors.MediaEmptyError: "Telegram does not take this file.",
    errors.PhotoInvalidDimensionsError: "Telegram does not take a picture of these dimensions.",
    errors.MessageIdInvalidError: "There is no such message in this chat.",
    errors.MsgIdInvalidError: "There is no such message in this chat.",
}


@contextmanager
def translate_errors(what: str, *, changes: bool = False) -> Generator[None]:
    """Translate the library's errors. `changes`: a broken connection leaves the outcome unknown."""
    try:
        yield
    except AnnabelleError:
        raise
    except (errors.RPCError, OSError, asyncio.IncompleteReadError) as error:  # a timeout is an OSError
        raise translate_error(error, what, changes=changes) from error


def translate_error(error: Exception, what: str, *, changes: bool = False) -> AnnabelleError:
    """Translate one error. `what` names the target: "The chat 'x'"."""
    if isinstance(error, errors.FloodWaitError | errors.SlowModeWaitError | errors.FloodPremiumWaitError):
        return _wait_error(float(error.seconds))
    if isinstance(error, _SIGNED_OUT):
        return SignedOut()
    if isinstance(error, _NO_SUCH_CHAT):
        return chat_not_found(what)
    for kind, sentence in _REFUSALS.items():
        if isinstance(error, kind):
            return NotAllowed(sentence)
    if isinstance(error, _NOT_OURS):
        return NotAllowed(f"Telegram does not permit this here ({_error_code(error)}).")
    if isinstance(error, errors.ServerError | errors.TimedOutError):
        return _connection_error(changes=changes)
    if isinstance(error, errors.RPCError):
        return InvalidArguments(f"Telegram refused it: {_error_code(error)}.")
    return _connection_error(changes=changes)


def chat_not_found(what: str) -> NotFound:
    return NotFound(f"{what} was not found at Telegram.", hint=FIND)


def _wait_error(seconds: float) -> TooManyRequests:
    return TooManyRequests(
        f"Telegram asks to wait {seconds:.0f} seconds before the next request of this kind.",
        hint="Nothing was done; try again after that.",
        retry_after=seconds,
    )


def _connection_error(*, changes: bool) -> AnnabelleError:
    if changes:
        return OutcomeUnknown(
            "The connection to Telegram broke, and whether it took effect is not known.",
            hint="Look with get_messages before you repeat it.",
        )
    return Unavailable("The connection to Telegram broke.", hint="Try again in a moment.")


def _error_code(error: errors.RPCError) -> str:
    """Telegram's own code for a refusal, which contains nothing of the request."""
    return str(cast("object", error.message) or type(error).__name__)[:80]
