"""Turns the events of one turn into changes for a screen.

A pure fold. After a crash a step may be tried again: the new attempt replaces what was shown of the old one, and the
text of a finished step replaces its pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from annabelle.core.errors import ErrorBody
from annabelle.core.messages import TurnEvent


@dataclass(frozen=True, slots=True)
class TextAdded:
    """More text of the current step."""

    text: str


@dataclass(frozen=True, slots=True)
class TextReplaced:
    """Replaces all text of the current step."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningAdded:
    text: str


@dataclass(frozen=True, slots=True)
class ToolStarted:
    call_id: str
    name: str
    arguments: dict[str, object]


@dataclass(frozen=True, slots=True)
class ToolFinished:
    call_id: str
    name: str
    worked: bool
    summary: str
    duration_ms: float


@dataclass(frozen=True, slots=True)
class NoticeAdded:
    text: str


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """The turn waits for the person's answer; the message that follows is the question in words."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class ReplySent:
    text: str
    goes_on: str | None = None
    """The message whose turn goes on because of it."""


@dataclass(frozen=True, slots=True)
class TurnViewFailed:
    error: ErrorBody


@dataclass(frozen=True, slots=True)
class TurnViewEnded:
    pass


TurnChange = (
    TextAdded
    | TextReplaced
    | ReasoningAdded
    | ToolStarted
    | ToolFinished
    | NoticeAdded
    | ApprovalAsked
    | ReplySent
    | TurnViewFailed
    | TurnViewEnded
)


@dataclass(slots=True)
class TurnView:
    """The turn of one message, from the events so far."""

    message_id: str
    _step: int = -1
    _attempt: int = -1
    _text: str = ""
    _whole: bool = False
    _seen: set[str] = field(default_factory=set[str])

    def apply(self, event: TurnEvent) -> list[TurnChange]:
        """The changes for this event; none if it is known or outdated."""
        if event.message_id != self.message_id or event.key in self._seen:
            return []
        self._seen.add(event.key)
        data = event.data
        match event.type:
            case "text":
                return self._apply_text(event)
            case "think":
                return [ReasoningAdded(_text_field(data, "text"))] if event.attempt >= self._attempt else []
            case "tool_start":
                arguments = data.get("arguments")
                known = cast("dict[str, object]", arguments) if isinstance(arguments, dict) else {}
                return [ToolStarted(_text_field(data, "call_id"), _text_field(data, "name"), known)]
            case "tool_complete":
                # The call was not made; the question is shown instead.
                return [] if data.get("status") == "waiting" else [_parse_finished(data)]
            case "notice":
                # A short wait and the progress of a call are for clients that show more than lines.
                text = _text_field(data, "text") or _text_field(data, "message")
                return [NoticeAdded(text)] if text else []
            case "approval":
                return [ApprovalAsked(_text_field(data, "approval_id"))] if data.get("approval_id") else []
            case "message":
                return [ReplySent(_text_field(data, "text"), _text_field(data, "goes_on") or None)]
            case "error":
                return [TurnViewFailed(parse_failure(data, _text_field(data, "text")))]
            case "done":
                return [TurnViewEnded()]
            case _:
                return []

    def _apply_text(self, event: TurnEvent) -> list[TurnChange]:
        text = _text_field(event.data, "text")
        final = event.data.get("final") is True
        outdated = event.step == self._step and event.attempt < self._attempt and not final
        if event.step < self._step or outdated:
            return []
        if event.step > self._step:
            self._step, self._attempt, self._text, self._whole = event.step, event.attempt, "", False
        if final:
            # The finished text of a step is valid whichever attempt it came from.
            shown, self._text, self._whole = self._text, text, True
            return _text_changes(shown, text)
        if self._whole:
            return []
        if event.attempt > self._attempt:
            shown, self._text, self._attempt = self._text, text, event.attempt
            return [TextReplaced(text)] if shown else [TextAdded(text)]
        self._text += text
        return [TextAdded(text)] if text else []


def _text_changes(shown: str, whole: str) -> list[TurnChange]:
    if shown == whole:
        return []
    return [TextAdded(whole[len(shown) :])] if whole.startswith(shown) else [TextReplaced(whole)]


def _parse_finished(data: dict[str, object]) -> ToolFinished:
    duration = data.get("duration_ms")
    return ToolFinished(
        call_id=_text_field(data, "call_id"),
        name=_text_field(data, "name"),
        worked=data.get("status") == "success",
        summary=_text_field(data, "summary") or _text_field(data, "error"),
        duration_ms=float(duration) if isinstance(duration, int | float) else 0.0,
    )


def parse_failure(data: dict[str, object], text: str = "") -> ErrorBody:
    """The error in an event or stored reply, or its plain text."""
    inner = data.get("error")
    fields = cast("dict[str, object]", inner) if isinstance(inner, dict) else data
    message = _text_field(fields, "message") or text or "The turn failed."
    return ErrorBody(
        code=_text_field(fields, "code") or "internal_error", message=message, hint=_text_field(fields, "hint") or None
    )


def _text_field(data: dict[str, object], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""
