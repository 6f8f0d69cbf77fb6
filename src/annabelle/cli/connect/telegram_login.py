"""Signing in to Telegram: the number, the code it sends, and the second password of those who have one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, TypeVar, cast

from pydantic import SecretStr
from telethon import errors

from annabelle.cli.connect.telegram_asking import Application, Asking
from annabelle.cli.connect.telegram_client import short_lived
from annabelle.core.connections import TelegramAccount
from annabelle.core.errors import AnnabelleError, CallerMistake, NotFound, OperatorMistake, TooManyRequests, Unavailable

T = TypeVar("T")

TRIES = 3
REQUEST_SECONDS = 30.0
_AGAIN = "Nothing was kept. Run it again: annabelle connect telegram"


class _User(Protocol):
    first_name: str | None
    last_name: str | None
    phone: str | None


class _Session(Protocol):
    def save(self) -> str: ...


class LoginClient(Protocol):
    """The part of TelegramClient that signs in."""

    session: _Session

    async def connect(self) -> None: ...
    def disconnect(self) -> Awaitable[None]: ...
    async def send_code_request(self, phone: str) -> object: ...
    async def sign_in(
        self, phone: str | None = None, code: str | None = None, *, password: str | None = None
    ) -> object: ...
    async def get_me(self) -> _User | None: ...


def make_client(application: Application) -> LoginClient:
    """Telethon's client, with a session that is kept nowhere yet."""
    return cast("LoginClient", short_lived(application.api_id, application.api_hash))


def sign_in(application: Application, phone: str, asking: Asking) -> TelegramAccount:
    """The signed-in account. Questions are asked while no loop runs, so that Ctrl-C ends them at once."""
    with asyncio.Runner() as runner:
        client: LoginClient | None = None
        try:
            client = runner.run(_made(application))
            runner.run(_ask(client.connect()))
            runner.run(_ask(client.send_code_request(phone)))
            if _code_wants_password(runner, client, phone, asking):
                _give_password(runner, client, asking)
            me = runner.run(_ask(client.get_me()))
            session = client.session.save()
        finally:
            if client is not None:
                runner.run(_disconnected(client))
    if me is None or not session:
        raise Unavailable("Telegram did not complete the sign-in.", hint=_AGAIN)
    name = " ".join(filter(None, (me.first_name, me.last_name)))
    return TelegramAccount(
        api_id=application.api_id, api_hash=application.api_hash, session=SecretStr(session), phone=phone, name=name
    )


def _code_wants_password(runner: asyncio.Runner, client: LoginClient, phone: str, asking: Asking) -> bool:
    for attempt in range(TRIES):
        code = asking.code(again=attempt > 0)
        try:
            runner.run(_ask(client.sign_in(phone=phone, code=code)))
        except errors.SessionPasswordNeededError:
            return True
        except (errors.PhoneCodeInvalidError, errors.PhoneCodeEmptyError, errors.PhoneCodeHashEmptyError):
            continue
        return False
    raise CallerMistake("The code was wrong too often.", hint=_AGAIN)


def _give_password(runner: asyncio.Runner, client: LoginClient, asking: Asking) -> None:
    for attempt in range(TRIES):
        password = asking.password(again=attempt > 0)
        try:
            runner.run(_ask(client.sign_in(password=password)))
        except errors.PasswordHashInvalidError:
            continue
        return
    raise CallerMistake("The password was wrong too often.", hint=_AGAIN)


async def _made(application: Application) -> LoginClient:
    return make_client(application)  # the library wants a running loop


async def _disconnected(client: LoginClient) -> None:
    try:
        async with asyncio.timeout(5):
            await client.disconnect()
    except (OSError, TimeoutError):
        pass  # it is not needed any more


async def _ask(request: Coroutine[Any, Any, T]) -> T:
    """One request; what can be tried again by the person passes, the rest is explained."""
    passing = (
        errors.SessionPasswordNeededError,
        errors.PhoneCodeInvalidError,
        errors.PhoneCodeEmptyError,
        errors.PhoneCodeHashEmptyError,
        errors.PasswordHashInvalidError,
    )
    try:
        async with asyncio.timeout(REQUEST_SECONDS):
            return await request
    except passing:
        raise
    except (errors.RPCError, OSError, ValueError) as error:
        raise _explained(error) from None


def _explained(error: Exception) -> AnnabelleError:
    match error:
        case errors.FloodWaitError() | errors.PhoneNumberFloodError():
            seconds = float(cast("int", getattr(error, "seconds", 3600)))
            return TooManyRequests(
                f"Telegram asks to wait {seconds:.0f} seconds before the next sign-in.",
                hint=_AGAIN,
                retry_after=seconds,
            )
        case errors.ApiIdInvalidError() | errors.ApiIdPublishedFloodError():
            return OperatorMistake(
                "Telegram does not know this application id and hash.", hint="They are at my.telegram.org."
            )
        case errors.PhoneNumberInvalidError():
            return CallerMistake("Telegram does not take this phone number.", hint="Write it as +491511234567.")
        case errors.PhoneNumberUnoccupiedError():
            return NotFound("No Telegram account has this number.", hint="Make one in Telegram's own app first.")
        case errors.PhoneNumberBannedError():
            return CallerMistake("Telegram has banned this number.")
        case errors.PhoneCodeExpiredError():
            return CallerMistake("The code has expired.", hint=_AGAIN)
        case errors.RPCError():
            return Unavailable(f"Telegram refused the sign-in ({type(error).__name__}).", hint=_AGAIN)
        case _:
            return Unavailable("Telegram can not be reached.", hint=_AGAIN)
