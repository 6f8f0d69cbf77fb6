"""How servers of mail and calendar are reached: how long they may take to let us in, whose certificates count."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from annabelle.core.certificates import client_context, mistrust
from annabelle.core.errors import Unavailable

LetIn = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Reach:
    """`seconds` is for everything until a server has let us in: finding its address, the greeting, the sign-in."""

    seconds: float = 25.0
    authority: str = ""

    def tls(self) -> ssl.SSLContext:
        return client_context(self.authority)

    @contextlib.asynccontextmanager
    async def waiting(self, server: str, nothing_done: str = "") -> AsyncGenerator[LetIn]:
        """Give up unless the thread inside says in time that it was let in; what it does then takes its own time."""
        loop = asyncio.get_running_loop()
        limit: asyncio.Timeout | None = None

        def stop_the_clock() -> None:
            if limit is not None and not limit.expired():
                with contextlib.suppress(RuntimeError):  # the call is over already
                    limit.reschedule(None)

        def let_in() -> None:
            loop.call_soon_threadsafe(stop_the_clock)

        try:
            async with asyncio.timeout(self.seconds) as limit:
                yield let_in
        except TimeoutError as error:
            if limit is None or not limit.expired():
                raise
            raise self.silent(server, nothing_done) from error

    def silent(self, server: str, nothing_done: str = "") -> Unavailable:
        """What is said of a server that does not answer."""
        return Unavailable(
            f"{server} did not answer within {self.seconds:g} seconds{nothing_done}.",
            hint="Check that the server is up and that no firewall is in the way. If it is only slow: "
            "annabelle config set MAIL_TIMEOUT_SECONDS SECONDS",
        )


def distrusted(server: str, error: ssl.SSLCertVerificationError) -> Unavailable:
    sentence, hint = mistrust(server, error)
    return Unavailable(sentence, hint=hint)
