"""Backend for the OpenAI chat-completions protocol, which most providers share. It does not retry.

Not the `openai` SDK: with 20 messages and 15 tools a streamed request costs 11 to 16 ms of CPU through it, and 2 to 3
ms here for the whole model service. Without the SDK a thinker takes 15 MB less and a fifth less time to import.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import cast

import httpx2 as httpx
from pydantic_ai.profiles.openai import openai_model_profile

from annabelle.core.errors import ProviderTrouble
from annabelle.core.network_access import trust_store
from annabelle.core.tools import JsonObject
from annabelle.llm.backend import (
    AnswerStarted,
    BackendAnswer,
    BackendEvent,
    ModelQuestion,
    broken_stream_error,
    parse_error_body,
    status_error,
    timeout_error,
    unreachable_error,
)
from annabelle.llm.openai_format import ChunkReader, format_messages, format_tool_choice, format_tools, parse_chunk
from annabelle.llm.providers import Endpoint, is_loopback

_CONNECT_SECONDS = 10
_LONGEST_ERROR = 20_000
# Errors after which the request certainly did not arrive, so that it costs nothing.
_NOT_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)
# Fields a server or model may not support; one it complains about is left out from then on.
_OPTIONAL = ("temperature", "stream_options", "tool_choice", "top_p", "min_p", "repeat_penalty")


class OpenAiBackend:
    """One provider with one connection pool. `extra` is added to every request."""

    def __init__(self, place: Endpoint, *, keep_alive: bool = True, extra: JsonObject | None = None) -> None:
        self._endpoint, self._extra = place, extra or {}
        self._unwanted: dict[str, set[str]] = {}
        self._client = httpx.AsyncClient(
            verify=trust_store(place.base_url),
            trust_env=not is_loopback(place.base_url),
            limits=httpx.Limits(max_keepalive_connections=20 if keep_alive else 0, keepalive_expiry=30),
        )

    async def close(self) -> None:
        await self._client.aclose()

    async def stream(self, ask: ModelQuestion) -> AsyncGenerator[BackendEvent]:
        body = self._body(ask)
        while True:
            request = self._request(body, ask.timeout)
            try:
                response = await self._client.send(request, stream=True)
            except _NOT_SENT as error:
                raise unreachable_error(self._endpoint, type(error).__name__) from error
            except httpx.TimeoutException as error:
                raise timeout_error(self._endpoint, ask.timeout) from error
            except httpx.HTTPError as error:
                raise broken_stream_error(self._endpoint, type(error).__name__) from error
            try:
                if response.status_code == 200:
                    async for event in self._read(response, ask, len(request.content) // 4):
                        yield event
                    return
                trouble, unwanted = await self._refusal(response, ask, body)
            finally:
                await response.aclose()
            if unwanted is None:
                raise trouble
            self._unwanted.setdefault(ask.model, set()).add(unwanted)
            del body[unwanted]

    def _body(self, ask: ModelQuestion) -> JsonObject:
        provider = self._endpoint.provider
        one_system = provider.local or provider.name == "compatible"
        body: JsonObject = {
            "model": ask.model,
            "messages": format_messages(ask.messages, one_system=one_system),
            "stream": True,
            "stream_options": {"include_usage": True},
            **self._extra,
        }
        if ask.tools:
            choice, tools = format_tool_choice(ask.tool_choice, ask.tools)
            body["tools"] = format_tools(tools)
            if choice != "auto":
                body["tool_choice"] = choice
        if ask.temperature is not None and not (provider.name == "openai" and _is_reasoning_model(ask.model)):
            body["temperature"] = ask.temperature
        if ask.max_tokens is not None:
            body["max_completion_tokens" if provider.name == "openai" else "max_tokens"] = ask.max_tokens
        if ask.answer_schema is not None:
            shape = {"name": ask.answer_schema.name, "schema": ask.answer_schema.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": shape}
        for name in self._unwanted.get(ask.model, ()):
            body.pop(name, None)
        return body

    def _request(self, body: JsonObject, timeout: float) -> httpx.Request:
        headers = {"content-type": "application/json", "accept": "text/event-stream, application/json"}
        if self._endpoint.key_text:
            headers["authorization"] = f"Bearer {self._endpoint.key_text}"
        return self._client.build_request(
            "POST",
            f"{self._endpoint.base_url}/chat/completions",
            content=json.dumps(body, ensure_ascii=False).encode(),
            headers=headers,
            timeout=httpx.Timeout(timeout, connect=min(_CONNECT_SECONDS, timeout)),
        )

    async def _refusal(
        self, response: httpx.Response, ask: ModelQuestion, body: JsonObject
    ) -> tuple[ProviderTrouble, str | None]:
        """Returns the error, and the optional field of the request it complains about, if any."""
        try:
            text = (await response.aread())[:_LONGEST_ERROR].decode(errors="replace")
        except httpx.HTTPError as error:
            return broken_stream_error(self._endpoint, type(error).__name__), None
        after = response.headers.get("retry-after")
        trouble = status_error(response.status_code, text, self._endpoint, ask.model, after)
        unwanted = None
        if response.status_code in (400, 422):
            message, _ = parse_error_body(text)
            unwanted = next((name for name in _OPTIONAL if name in body and name in message), None)
        return trouble, unwanted

    async def _read(
        self, response: httpx.Response, ask: ModelQuestion, estimated_input: int
    ) -> AsyncGenerator[BackendEvent]:
        reader, begun = ChunkReader(), False
        try:
            async for chunk in _iterate_chunks(response):
                if chunk.get("error"):
                    raise self._error_within(chunk, ask.model)
                if not begun:
                    begun = True
                    yield AnswerStarted()
                for event in reader.feed(chunk):
                    yield event
        except httpx.TimeoutException as error:
            raise timeout_error(self._endpoint, ask.timeout) from error
        except httpx.HTTPError as error:
            raise broken_stream_error(self._endpoint, type(error).__name__) from error
        except (ValueError, TypeError, AttributeError) as error:
            raise broken_stream_error(self._endpoint, "it is not in the expected format") from error
        if not reader.finished:
            raise broken_stream_error(self._endpoint, "the stream ended early")
        response_whole = reader.response(self._endpoint.provider.name, ask.model, estimated_input)
        yield BackendAnswer(response_whole, reader.stated_cost)

    def _error_within(self, chunk: JsonObject, model: str) -> ProviderTrouble:
        """An error within a stream; its code is a status at some providers and a word at others."""
        _, code = parse_error_body(chunk)
        status = int(code) if code.isdigit() else (429 if "rate_limit" in code else 500)
        return status_error(status, chunk, self._endpoint, model)


def _is_reasoning_model(model: str) -> bool:
    """Whether this OpenAI model reasons, and so accepts no temperature."""
    return bool(openai_model_profile(model).get("openai_supports_reasoning", False))


async def _iterate_chunks(response: httpx.Response) -> AsyncIterator[JsonObject]:
    if "json" in response.headers.get("content-type", ""):
        yield cast("JsonObject", parse_chunk(await response.aread()))  # a server that does not stream
        return
    async for line in _iterate_lines(response):
        if line.startswith(b"data:") and not line.endswith(b"[DONE]"):
            value = parse_chunk(line[5:])
            if isinstance(value, dict):
                yield cast("JsonObject", value)


async def _iterate_lines(response: httpx.Response) -> AsyncIterator[bytes]:
    """Splits at newlines only. httpx also splits at U+2028, in the middle of a text."""
    rest = b""
    async for piece in response.aiter_bytes():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield line.rstrip()
    if rest.strip():
        yield rest.rstrip()
