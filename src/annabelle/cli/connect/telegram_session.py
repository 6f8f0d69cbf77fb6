"""Signs in to Telegram and out again with Telethon. Imported only when it is used."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Coroutine
from typing import Any, Protocol, TypeVar, cast

from pydantic import SecretStr
from telethon import TelegramClient, errors
from telethon.sessions import StringSession

from annabelle import __version__
from annabelle.cli.connect.telegram import TelegramApplication, TelegramLoginPrompt
from annabelle.core.connections import TelegramAccount
from annabelle.core.errors import AnnabelleError, CallerMistake, NotFound, OperatorMistake, TooManyRequests, Unavailable

T = TypeVar("T")

TRIES = 3
REQUEST_SECONDS = 30.0
_AGAIN = "Nothing was kept. Run it again: annabelle connect telegram"


class _TelegramUser(Protocol):
    first_name: str | None
    last_name: str | None
    phone: str | None


class _TelegramLoginSession(Protocol):
    def save(self) -> str: ...


class SignInClient(Protocol):
    """The part of TelegramClient that signs in and out."""

    session: _TelegramLoginSession

    async def connect(self) -> None: ...
    def disconnect(self) -> Awaitable[None]: ...
    async def send_code_request(self, phone: str) -> object: ...
    async def sign_in(
        self, phone: str | None = None, code: str | None = None, *, password: str | None = None
    ) -> object: ...
    async def get_me(self) -> _TelegramUser | None: ...
    async def log_out(self) -> bool: ...


def make_client(application: TelegramApplication | TelegramAccount, session: str = "") -> SignInClient:
    """Telethon's client, with a session that it does not save."""
    client = TelegramClient(
        StringSession(session),
        application.api_id,
        application.api_hash.get_secret_value(),
        device_model="Annabelle",
        app_version=__version__,
        flood_sleep_threshold=0,
        connection_retries=2,
        receive_updates=False,
    )
    return cast("SignInClient", client)


def sign_in(application: TelegramApplication, phone: str, asking: TelegramLoginPrompt) -> TelegramAccount:
    """Sign in. Questions are asked while no event loop runs, so that Ctrl-C ends them at once."""
    with asyncio.Runner() as runner:
        client: SignInClient | None = None
        try:
            client = runner.run(_make_client(application))
            runner.run(_request(client.connect()))
            runner.run(_request(client.send_code_request(phone)))
            if _code_wants_password(runner, client, phone, asking):
                _give_password(runner, client, asking)
            me = runner.run(_request(client.get_me()))
            session = client.session.save()
        finally:
            if client is not None:
                runner.run(_disconnect(client))
    if me is None or not session:
        raise Unavailable("Telegram did not complete the sign-in.", hint=_AGAIN)
    name = " ".join(filter(None, (me.first_name, me.last_name)))
    return TelegramAccount(
        api_id=application.api_id, api_hash=application.api_hash, session=SecretStr(session), phone=phone, name=name
    )


def _code_wants_password(runner: asyncio.Runner, client: SignInClient, phone: str, asking: TelegramLoginPrompt) -> bool:
    for attempt in range(TRIES):
        code = asking.code(again=attempt > 0)
        try:
            runner.run(_request(client.sign_in(phone=phone, code=code)))
        except errors.SessionPasswordNeededError:
            return True
        except (errors.PhoneCodeInvalidError, errors.PhoneCodeEmptyError, errors.PhoneCodeHashEmptyError):
            continue
        return False
    raise CallerMistake("The code was wrong too often.", hint=_AGAIN)


def _give_password(runner: asyncio.Runner, client: SignInClient, asking: TelegramLoginPrompt) -> None:
    for attempt in range(TRIES):
        password = asking.password(again=attempt > 0)
        try:
            runner.run(_request(client.sign_in(password=password)))
        except errors.PasswordHashInvalidError:
            continue
        return
    raise CallerMistake("The password was wrong too often.", hint=_AGAIN)


async def _make_client(application: TelegramApplication) -> SignInClient:
    return make_client(application)  # the library needs a running loop


async def _disconnect(client: SignInClient) -> None:
    try:
        async with asyncio.timeout(5):
            await client.disconnect()
    except (OSError, TimeoutError):
        pass  # it is no longer needed


async def _request(request: Coroutine[Any, Any, T]) -> T:
    """Run one request. Errors the person can correct pass; others are explained."""
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
        raise _to_error(error) from None


def _to_error(error: Exception) -> AnnabelleError:
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


_SECONDS = 20.0
_END_SECONDS = 5.0


def end_session(account: TelegramAccount) -> bool:
    """Whether Telegram ended the session. The account is removed here in any case."""
    return asyncio.run(_log_out(account))


async def _log_out(account: TelegramAccount) -> bool:
    try:
        client = make_client(account, account.session.get_secret_value())
    except ValueError:
        return False  # the stored session is invalid
    try:
        async with asyncio.timeout(_SECONDS):
            await client.connect()
            return await client.log_out()
    except (errors.AuthKeyError, errors.UnauthorizedError):
        return True  # it had already ended
    except (errors.RPCError, OSError, ValueError):
        return False
    finally:
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                await client.disconnect()
