"""`/v1/chat/completions` and `/v1/models`: Annabelle's agents for programs that speak OpenAI's protocol (API-06).

A front end sends the whole conversation with every request. Only its last message is taken, as the person's: Annabelle
has a history of her own for each thread, and what a front end says she or the person said before proves nothing (I-08).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final, Literal, cast

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from annabelle.core.errors import AgentPaused, InvalidArguments, NotFound, ToolTimeout, error_from
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trace import current_trace
from annabelle.core.turn_view import parse_failure
from annabelle.hub.api.endpoint import ApiRouter, Caller, Responses, TheHub, document, read_body
from annabelle.hub.api.messages import UNFINISHED, WAIT_MAX, NewMessage, post_message
from annabelle.hub.api.openai_stream import ChatCompletion, ChatCompletionText, CompletionHead, stream_completion
from annabelle.hub.api.threads import MessageProgress
from annabelle.hub.context import HubContext
from annabelle.hub.security.request_guard import OPENAI_PATHS, error_response, validation_error

router = ApiRouter("openai")
CHAT_HEADERS: Final = ("X-Chat-Id", "X-OpenWebUI-Chat-Id")
"""Headers that name the chat. Open WebUI sends the second one, if it is told to."""
_REPEAT_HEADER: Final = "Idempotency-Key"
# What was stored is not to be said again by a client that retries on its own.
_NO_RETRY: Final = {"X-Should-Retry": "false"}


class ChatMessage(BaseModel):
    """One message of a request."""

    role: str
    content: object = Field(default=None, description="A text, or a list of parts of which each is a text")


class StreamOptions(BaseModel):
    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """Temperature, penalties and whatever else is not named here is ignored: the agent's configuration decides it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"model": "annabelle", "messages": [{"role": "user", "content": "What is in my workspace?"}]}]
        }
    )

    model: str = Field(description="An agent, as GET /v1/models lists them")
    messages: list[ChatMessage] = Field(min_length=1, description="The last one is taken, and must be the user's")
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: str | None = Field(default=None, description="Names the chat, unless a header does")
    n: int | None = Field(default=None, ge=1, le=1)
    tools: list[object] | None = Field(default=None, max_length=0, description="Not taken: agents have their own")
    functions: list[object] | None = Field(default=None, max_length=0, description="Not taken: agents have their own")


class ModelCard(BaseModel):
    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str = "annabelle"


class ModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelCard]


@router.get("/v1/models", **document("The agents, as models"))
async def list_models(hub: TheHub) -> ModelList:
    """Every agent that is switched on, the default one first."""
    since = int(hub.base.lifecycle.started_at.timestamp())
    return ModelList(data=[ModelCard(id=agent, created=since) for agent in _agents(hub)])


@router.get("/v1/models/{model}", **document("One agent, as a model", 404))
async def get_model(model: str, hub: TheHub) -> ModelCard:
    _check_agent(hub, model)
    return ModelCard(id=model, created=int(hub.base.lifecycle.started_at.timestamp()))


_STREAM: Responses = {
    200: {
        "model": ChatCompletion,
        "description": "The answer; with `stream`, server-sent events that end with `[DONE]`",
        "content": {"text/event-stream": {"schema": {"type": "object"}}},
    }
}


@router.post(
    "/v1/chat/completions",
    response_model=ChatCompletion,
    **document("Talk to an agent as to a model", 400, 404, 409, 502, 504, body=ChatRequest, more=_STREAM),
)
async def create_chat_completion(request: Request, hub: TheHub, caller: Caller) -> Response:
    """The last message is said to the agent; a client that hangs up loses the stream, and the answer stays in the
    thread. If the turn waits for a yes, the answer is the question."""
    asked = await read_body(request, ChatRequest)
    _check_agent(hub, asked.model)
    new = _to_message(asked, request.headers)
    if asked.stream:
        progress = await post_message(hub, caller, new)
        head = CompletionHead(f"chatcmpl-{progress.message_id}", int(now().timestamp()), asked.model)
        with_usage = asked.stream_options is not None and asked.stream_options.include_usage is True
        return StreamingResponse(
            stream_completion(hub, caller, progress, head, with_usage=with_usage),
            media_type="text/event-stream",
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
        )
    return _to_response(await post_message(hub, caller, new, WAIT_MAX), asked.model)


def _to_response(progress: MessageProgress, model: str) -> Response:
    reply, failed = progress.reply, progress.state == "failed"
    if progress.state in UNFINISHED or (failed and reply is None):
        failure = ToolTimeout("There is no answer yet.", hint="It will be in the chat; ask there again later.")
    elif failed and reply is not None:
        failure = error_from(parse_failure(reply.metadata, reply.text))
    else:
        head = CompletionHead(f"chatcmpl-{progress.message_id}", int(now().timestamp()), model)
        said = "\n\n".join(one.text for one in progress.replies)
        whole = head.whole(ChatCompletionText(content=said), reply.metadata if reply is not None else {})
        return Response(whole.model_dump_json(), media_type="application/json")
    response = error_response(failure, current_trace(), OPENAI_PATHS)
    if isinstance(failure, AgentPaused):
        response.status_code = HTTPStatus.CONFLICT  # nothing is down; somebody has to resume it
    response.headers.update(_NO_RETRY)
    return response


def _agents(hub: HubContext) -> list[str]:
    return [agent.agent_id for agent in hub.agents.registry.config.agents if agent.enabled]


def _check_agent(hub: HubContext, model: str) -> None:
    if model not in (known := _agents(hub)):
        raise NotFound("There is no such model.", hint=f"There are: {', '.join(known)}.", field="model")


def _to_message(asked: ChatRequest, headers: Mapping[str, str]) -> NewMessage:
    last = asked.messages[-1]
    if last.role != "user":
        raise InvalidArguments(
            "The last message is not the user's.",
            hint="Send what the user says as the last message; what came before it is not read.",
            field="messages",
        )
    named = next((value for name in CHAT_HEADERS if (value := headers.get(name))), asked.user)
    try:
        return NewMessage(
            text=_read_text(last.content),
            chat_id=named or _chat_of_first_message(asked.messages),
            external_id=headers.get(_REPEAT_HEADER),
            agent_id=asked.model,
        )
    except ValidationError as error:
        raise validation_error(error) from error


def _chat_of_first_message(messages: list[ChatMessage]) -> str:
    """The same for every request of a front end that sends the whole conversation each time."""
    first = next(message.content for message in messages if message.role == "user")
    return f"openai-{hashlib.sha256(_join_texts(first).encode(errors='replace')).hexdigest()[:24]}"


def _join_texts(content: object) -> str:
    if isinstance(content, str):
        return content
    texts = [part.get("text") for part in _parts(content)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _read_text(content: object) -> str:
    """The text of the person's message. What is no text is refused rather than left out."""
    if any(part.get("type") != "text" for part in _parts(content)):
        raise InvalidArguments("Only text can be sent here, no images, sound or files.", field="messages.content")
    return _join_texts(content)


def _parts(content: object) -> list[JsonObject]:
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return [cast("JsonObject", part) if isinstance(part, dict) else {} for part in parts]
