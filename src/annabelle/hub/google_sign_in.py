"""A sign-in at Google that was begun over HTTP. The browser brings its outcome back to this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from annabelle.core.connections import GoogleAccount
from annabelle.core.errors import NotFound, Unavailable
from annabelle.core.google_oauth import (
    GoogleOAuthUrls,
    OAuthAttempt,
    OAuthClient,
    finish_sign_in,
    open_redirect_server,
)

_SECONDS = 300.0


class GoogleSignIn:
    """One at a time: a new one ends the one before."""

    def __init__(self) -> None:
        self._task: asyncio.Task[GoogleAccount] | None = None

    async def begin(
        self, addresses: GoogleOAuthUrls, client: OAuthClient, keep: Callable[[GoogleAccount], Awaitable[None]]
    ) -> str:
        """The address where the person signs in. The account is given to `keep`, whether or not somebody waits."""
        stack = AsyncExitStack()
        redirect = await stack.enter_async_context(open_redirect_server())
        attempt = OAuthAttempt(redirect.address)

        async def finish() -> GoogleAccount:
            async with stack:
                try:
                    decision = await asyncio.wait_for(redirect.wait_for_decision(attempt.state), _SECONDS)
                except TimeoutError:
                    raise Unavailable("Nobody signed in within five minutes.", hint="Try it again.") from None
            account = await finish_sign_in(addresses, client, attempt, decision)
            await keep(account)
            return account

        while self._task is not None and not self._task.done():
            self._task.cancel()
            await asyncio.wait({self._task})
        self._task = asyncio.create_task(finish())
        self._task.add_done_callback(lambda task: task.cancelled() or task.exception())  # somebody may wait, or nobody
        return attempt.sign_in_url(addresses, client)

    async def wait(self) -> GoogleAccount:
        """The account, as soon as the person has allowed it."""
        task = self._task
        if task is None:
            raise NotFound("No sign-in at Google was begun.")
        await asyncio.wait({task})
        if task.cancelled():
            raise Unavailable("Another sign-in was begun.")
        return task.result()
