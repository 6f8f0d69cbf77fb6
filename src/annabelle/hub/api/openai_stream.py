"""Answers in OpenAI's format: as one object, and in pieces as server-sent events while the turn runs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import BaseModel

from annabelle.core.contract import TokenUsage
from annabelle.core.errors import ErrorBody, Unavailable, error_from
from annabelle.core.messages import StoredEvent
from annabelle.core.turn_view import (
    ReplySent,
    TextAdded,
    TextReplaced,
    TurnChange,
    TurnView,
    TurnViewEnded,
    TurnViewFailed,
)
from annabelle.hub.api.threads import MessageProgress
from annabelle.hub.context import HubContext
from annabelle.hub.conversations.event_log import EventReader, follow_events
from annabelle.hub.security.identities import CallerIdentity
from annabelle.hub.security.request_guard import openai_error

_DONE: Final = b"data: [DONE]\n\n"
_PARAGRAPH: Final = "\n\n"


class ChatCompletionText(BaseModel):
    role: Literal["assistant"] = "assistant"
    content: str


class CompletionChoice(BaseModel):
    index: int = 0
    message: ChatCompletionText
    finish_reason: Literal["stop"] = "stop"


class CompletionUsage(BaseModel):
    """The tokens of all model calls of the turn."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, object]) -> CompletionUsage:
        used = TokenUsage.model_validate(metadata.get("usage") or {})
        total = used.input_tokens + used.output_tokens
        return cls(prompt_tokens=used.input_tokens, completion_tokens=used.output_tokens, total_tokens=total)


class ChatCompletion(BaseModel):
    """The answer of an agent."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: CompletionUsage


@dataclass(frozen=True, slots=True)
class CompletionHead:
    """What every piece of one answer repeats."""

    id: str
    created: int
    model: str

    def whole(self, message: ChatCompletionText, metadata: Mapping[str, object]) -> ChatCompletion:
        return ChatCompletion(
            id=self.id,
            created=self.created,
            model=self.model,
            choices=[CompletionChoice(message=message)],
            usage=CompletionUsage.from_metadata(metadata),
        )

    def piece(self, delta: Mapping[str, object], finish: str | None = None) -> bytes:
        return self._encode([{"index": 0, "delta": delta, "finish_reason": finish}])

    def usage(self, metadata: Mapping[str, object]) -> bytes:
        return self._encode([], usage=CompletionUsage.from_metadata(metadata).model_dump())

    def _encode(self, choices: list[dict[str, object]], **more: object) -> bytes:
        body = {"id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.model}
        return _encode({**body, "choices": choices, **more})


def _encode(body: Mapping[str, object]) -> bytes:
    return f"data: {json.dumps(body)}\n\n".encode()


@dataclass(slots=True)
class AnswerText:
    """Turns changes into text for a reader that cannot take anything back: what was replaced is said again, whole."""

    _sent: bool = False
    _step: int = -1
    _step_text: str = ""

    def add(self, change: TurnChange, step: int) -> str:
        """The text to send for a change."""
        match change:
            case TextAdded(text) if step == self._step:
                self._step_text += text
                return text
            case TextAdded(text) | TextReplaced(text):
                self._step, self._step_text = step, text
                return self._begin_paragraph(text)
            case ReplySent(text):
                # The stored answer. It is mostly what came in pieces.
                shown, self._step, self._step_text = self._step_text, -1, ""
                return text[len(shown) :] if shown and text.startswith(shown) else self._begin_paragraph(text)
            case _:
                return ""

    def _begin_paragraph(self, text: str) -> str:
        before, self._sent = _PARAGRAPH if self._sent else "", True
        return before + text


async def stream_completion(
    hub: HubContext, caller: CallerIdentity, progress: MessageProgress, head: CompletionHead, *, with_usage: bool
) -> AsyncIterator[bytes]:
    """The answer to a stored message in pieces, as its turn goes on. The turn does not depend on this reader."""
    yield head.piece({"role": "assistant", "content": ""})
    # The events of a message that had come before lie further back.
    after = 0 if progress.duplicate else progress.last_event_id or 0
    reader = EventReader(caller.user_id, progress.thread_id, after, caller.grant.hash)
    view, text = TurnView(progress.message_id), AnswerText()
    async with aclosing(follow_events(reader, hub.storage.database, hub.conversations.fanout)) as events:
        async for event in events:
            if event is None:
                yield b": still here\n\n"
                continue
            for change in view.apply(event):
                if isinstance(change, TurnViewFailed):
                    yield _encode_error(change.error)
                    return
                if isinstance(change, TurnViewEnded):
                    for last in _end(event, head, with_usage=with_usage):
                        yield last
                    return
                if added := text.add(change, event.step):
                    yield head.piece({"content": added})
    stopping = Unavailable("Annabelle is stopping.", hint="The answer will be in the chat once it is back.")
    yield _encode_error(stopping.body())


def _end(event: StoredEvent, head: CompletionHead, *, with_usage: bool) -> list[bytes]:
    usage = [head.usage(event.data)] if with_usage else []
    return [head.piece({}, "stop"), *usage, _DONE]


def _encode_error(body: ErrorBody) -> bytes:
    return _encode({"error": openai_error(error_from(body).http_status, body)})
