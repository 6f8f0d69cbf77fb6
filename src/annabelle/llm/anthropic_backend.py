"""Backend for Anthropic, through pydantic-ai's adapter and Anthropic's SDK.

Only imported when used: it takes 34 MB. The protocol is complex enough (signed thinking, cache marks, content blocks)
that the adapter is worth its 8 ms of CPU per request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import cast

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import ModelAPIError, ModelHTTPError, UnexpectedModelBehavior, UserError
from pydantic_ai.messages import (
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from annabelle.core.errors import ProviderFailed, ProviderTrouble
from annabelle.core.network_access import trust_store
from annabelle.llm.backend import (
    AnswerStarted,
    BackendAnswer,
    BackendEvent,
    ModelQuestion,
    broken_stream_error,
    status_error,
    unreachable_error,
)
from annabelle.llm.providers import Endpoint, is_loopback
from annabelle.llm.types import TextDelta, ThinkDelta

_DEFAULT_MAX_TOKENS = 4096


class AnthropicBackend:
    """One client for all models of Anthropic, without retries."""

    def __init__(self, place: Endpoint) -> None:
        self._endpoint = place
        self._http = httpx2.AsyncClient(verify=trust_store(place.base_url), trust_env=not is_loopback(place.base_url))
        client = AsyncAnthropic(api_key=place.key_text, base_url=place.base_url, max_retries=0, http_client=self._http)
        self._provider = AnthropicProvider(anthropic_client=client)
        self._models: dict[str, AnthropicModel] = {}

    async def close(self) -> None:
        await self._http.aclose()

    async def stream(self, ask: ModelQuestion) -> AsyncGenerator[BackendEvent]:
        model = self._models.get(ask.model)
        if model is None:
            model = self._models[ask.model] = AnthropicModel(ask.model, provider=self._provider)
        started = False
        try:
            async with model_request_stream(
                model, ask.messages, model_settings=_make_settings(ask), model_request_parameters=_make_parameters(ask)
            ) as stream:
                async for event in stream:
                    if not started:
                        started = True
                        yield AnswerStarted()
                    delta = _to_delta(event)
                    if delta is not None:
                        yield delta
                response = stream.get()
        except (ModelAPIError, UnexpectedModelBehavior, UserError) as error:
            raise self._trouble(error, ask.model) from error
        if response.finish_reason is None:
            raise broken_stream_error(self._endpoint, "the stream ended early")
        yield BackendAnswer(response)

    def _trouble(self, error: Exception, model: str) -> ProviderTrouble:
        if isinstance(error, ModelHTTPError):
            after = (error.headers or {}).get("retry-after")
            return status_error(error.status_code, error.body, self._endpoint, model, after)
        if isinstance(error, ModelAPIError):
            cause = type(error.__cause__ or error).__name__
            return (
                unreachable_error(self._endpoint, cause)
                if _was_not_sent(error)
                else broken_stream_error(self._endpoint, cause)
            )
        return ProviderFailed(f"Anthropic's answer could not be read ({type(error).__name__}).")


def _was_not_sent(error: BaseException | None) -> bool:
    """Whether the request certainly did not arrive, so that it costs nothing."""
    while error is not None and not isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout):
        error = error.__cause__
    return error is not None


def _make_settings(ask: ModelQuestion) -> ModelSettings:
    settings = ModelSettings(
        max_tokens=ask.max_tokens or _DEFAULT_MAX_TOKENS,
        timeout=ask.timeout,
        # The prompt's prefix is stable, and a turn asks several times within minutes.
        cache=True,
    )
    if ask.temperature is not None:
        settings["temperature"] = min(ask.temperature, 1.0)
    if ask.tools and ask.tool_choice != "auto":
        choice = ask.tool_choice
        settings["tool_choice"] = choice if isinstance(choice, str) else list(choice)
    return settings


def _make_parameters(ask: ModelQuestion) -> ModelRequestParameters:
    return ModelRequestParameters(
        function_tools=[
            ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.input_schema)
            for tool in ask.tools
        ]
    )


def _to_delta(event: object) -> TextDelta | ThinkDelta | None:
    if isinstance(event, PartStartEvent):
        part = cast("object", event.part)
        if isinstance(part, TextPart) and part.content:
            return TextDelta(part.content)
        if isinstance(part, ThinkingPart) and part.content:
            return ThinkDelta(part.content)
    elif isinstance(event, PartDeltaEvent):
        delta = cast("object", event.delta)
        if isinstance(delta, TextPartDelta) and delta.content_delta:
            return TextDelta(delta.content_delta)
        if isinstance(delta, ThinkingPartDelta) and delta.content_delta:
            return ThinkDelta(delta.content_delta)
    return None
