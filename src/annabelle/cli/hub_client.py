"""HTTP client of the terminal commands: requests, server-sent events and tool calls to this home's hub."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Self, TypeVar, cast

import httpx2 as httpx
from pydantic import BaseModel, ValidationError

from annabelle.core.contract import CLIENT_HEADER, TERMINAL, TOKEN_HEADER
from annabelle.core.errors import AnnabelleError, ErrorBody, HubUnreachable, Unavailable, error_from
from annabelle.core.home import Home
from annabelle.core.network_access import trust_store
from annabelle.core.settings import load_settings
from annabelle.core.tools import JsonObject, ToolResult

T = TypeVar("T")

RECONNECT_SECONDS = 0.25
PATIENCE_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One server-sent event; a reconnect resumes after its id."""

    data: str
    event: str = "message"
    id: str | None = None


async def parse_events(lines: AsyncIterable[str]) -> AsyncGenerator[ServerEvent]:
    """Parse events from lines. An incomplete event at the end is dropped; it comes again after a reconnect."""
    name, identity, data = "message", None, list[str]()
    async for line in lines:
        if not line:
            if data:
                yield ServerEvent("\n".join(data), name, identity)
            name, identity, data = "message", None, []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id":
            identity = value


ConnectStream = Callable[[str | None], AbstractAsyncContextManager[httpx.Response]]


async def follow_events(connect: ConnectStream, last_id: str | None) -> AsyncGenerator[ServerEvent]:
    """Yield events and reconnect as needed, each time after the last event seen.

    `connect` opens the stream after the given id. Raises HubUnreachable if no connection succeeds for a minute.
    """
    loop = asyncio.get_running_loop()
    give_up = loop.time() + PATIENCE_SECONDS
    while True:
        connected = False
        try:
            async with connect(last_id) as response, aclosing(parse_events(response.aiter_lines())) as events:
                connected = True
                async for event in events:
                    last_id = event.id or last_id
                    yield event
        except (httpx.TransportError, HubUnreachable) as error:
            if not connected and loop.time() > give_up:
                raise HubUnreachable(
                    "The connection to Annabelle was lost.", hint="See whether it runs: annabelle status"
                ) from error
        if connected:  # even if it brought no event: a turn may be silent for longer than the limit
            give_up = loop.time() + PATIENCE_SECONDS
        await asyncio.sleep(RECONNECT_SECONDS)


REQUEST_SECONDS = 30.0
WAIT_SECONDS = 25.0
RESTART_SECONDS = 15.0


class HubFile(BaseModel):
    """What a running hub writes to `run/hub.json`."""

    pid: int
    url: str
    version: str = ""
    started: datetime | None = None


@dataclass(frozen=True, slots=True)
class HubAddress:
    url: str
    token: str


def not_running() -> HubUnreachable:
    return HubUnreachable("Annabelle is not running.", hint="Start it with: annabelle up")


def read_hub_file(home: Home) -> HubFile | None:
    """Read the hub's file, which may be stale."""
    try:
        return HubFile.model_validate_json(home.hub_file.read_bytes())
    except (OSError, ValidationError):
        return None


def find_hub(home: Home) -> HubAddress:
    """The address of this home's hub; raises HubUnreachable if there is none."""
    note = read_hub_file(home)
    if note is None:
        raise not_running()
    configured = load_settings(home).annabelle_token
    try:
        token = configured.get_secret_value() if configured else home.token_file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise HubUnreachable(
            f"The token in {home.token_file} can not be read.",
            hint="Fix its permissions, or restart Annabelle, which makes a new one.",
        ) from error
    return HubAddress(note.url, token)


class CliHubClient:
    """A connection to the hub, used as an async context manager."""

    def __init__(self, address: HubAddress) -> None:
        self._http = httpx.AsyncClient(
            base_url=address.url,
            verify=trust_store(address.url),
            headers={TOKEN_HEADER: address.token, CLIENT_HEADER: TERMINAL},
            timeout=httpx.Timeout(REQUEST_SECONDS, connect=5.0),
            trust_env=False,  # never use a proxy for loopback
        )

    @classmethod
    def for_home(cls, home: Home) -> Self:
        return cls(find_hub(home))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._http.aclose()

    async def get(self, path: str, **parameters: str | int | float) -> JsonObject:
        return await self._exchange("GET", path, parameters=parameters)

    async def post(self, path: str, body: JsonObject, timeout: float = REQUEST_SECONDS) -> JsonObject:
        return await self._exchange("POST", path, body=body, timeout=timeout)

    async def wait_for_message(self, message_id: str) -> JsonObject:
        """Wait until the message's turn is over and return it with its replies. Survives a restart of the hub."""
        loop = asyncio.get_running_loop()
        gone_since: float | None = None
        while True:
            try:
                found = await self.get(f"/messages/{message_id}", wait=WAIT_SECONDS)
            except HubUnreachable as gone:
                gone_since = gone_since or loop.time()
                if loop.time() > gone_since + RESTART_SECONDS:
                    raise HubUnreachable(
                        "Annabelle went away in the middle of the answer.",
                        hint="Your message is kept and will be answered at the next start: annabelle up",
                    ) from gone
                await asyncio.sleep(RECONNECT_SECONDS)
                continue
            if found["state"] in ("done", "failed"):
                return found
            gone_since = None

    def events(self, thread_id: str | None = None, last_id: str | None = None) -> AsyncGenerator[ServerEvent]:
        """A thread's events after `last_id`, or those of all threads, across reconnects."""
        path = "/events" if thread_id is None else f"/threads/{thread_id}/events"

        @asynccontextmanager
        async def connect(after: str | None) -> AsyncGenerator[httpx.Response]:
            headers = {"Accept": "text/event-stream"} | ({"Last-Event-ID": after} if after is not None else {})
            timeout = httpx.Timeout(5.0, read=60.0)
            async with self._http.stream("GET", path, headers=headers, timeout=timeout) as response:
                if response.is_error:
                    await response.aread()
                    raise _parse_error(response)
                yield response

        return follow_events(connect, last_id)

    async def _exchange(
        self,
        method: str,
        path: str,
        *,
        parameters: dict[str, str | int | float] | None = None,
        body: JsonObject | None = None,
        timeout: float = REQUEST_SECONDS,
    ) -> JsonObject:
        try:
            response = await self._http.request(method, path, params=parameters, json=body, timeout=timeout)
        except httpx.ConnectError as error:
            raise not_running() from error
        except httpx.TimeoutException as error:
            raise HubUnreachable(
                "Annabelle did not answer in time.", hint="Look into its log: annabelle logs"
            ) from error
        except httpx.TransportError as error:
            raise HubUnreachable(
                "The connection to Annabelle broke.", hint="See whether it runs: annabelle status"
            ) from error
        if response.is_error:
            raise _parse_error(response)
        return cast("JsonObject", response.json()) if response.content else {}


def _parse_error(response: httpx.Response) -> AnnabelleError:
    try:
        body = ErrorBody.model_validate(response.json()["error"])
    except (json.JSONDecodeError, KeyError, TypeError, ValidationError):
        return Unavailable(
            f"Something other than Annabelle answered at {response.url.copy_with(path='/')}.",
            hint="Restart Annabelle: annabelle restart",
        )
    return error_from(body)


def ask_hub(ask: Callable[[CliHubClient], Awaitable[T]], home: Home | None = None) -> T:
    """Run one exchange on a new connection to the hub of this home."""

    async def run() -> T:
        async with CliHubClient.for_home(home or Home.from_environment()) as client:
            return await ask(client)

    return asyncio.run(run())


def get_json(path: str, **query: str | int | float) -> JsonObject:
    return ask_hub(lambda client: client.get(path, **query))


def get_rows(path: str, name: str, **query: str | int | float) -> list[JsonObject]:
    """The list called `name` in the hub's answer."""
    return cast("list[JsonObject]", get_json(path, **query)[name])


def post_json(path: str, body: JsonObject, timeout: float = REQUEST_SECONDS) -> JsonObject:
    return ask_hub(lambda client: client.post(path, body, timeout))


CALL_SECONDS = 600.0


async def call_tool(client: CliHubClient, name: str, arguments: JsonObject) -> ToolResult:
    """Call a tool. The result may be an error."""
    body: JsonObject = {"name": name, "arguments": arguments}
    return ToolResult.model_validate(await client.post("/tools/call", body, timeout=CALL_SECONDS))


def raise_if_failed(result: ToolResult) -> ToolResult:
    """Return the result, or raise the tool's error so that the exit code is right."""
    if result.is_error:
        raise error_from(result.error) if result.error is not None else AnnabelleError(result.text)
    return result


def call_tool_once(name: str, /, **arguments: object) -> ToolResult:
    """Call a tool on a new connection. Arguments that are None are left out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    return raise_if_failed(ask_hub(lambda client: call_tool(client, name, given)))
