"""What a reader of the event stream shows of one turn, and how a newer attempt replaces an older one.

A pure fold: events go in, changes for a screen come out. After a crash a step may be tried again; what was shown of
the older attempt is taken back as soon as the newer one speaks, and the text of a finished step replaces its pieces.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from annabelle.core.errors import ErrorBody
from annabelle.core.events import TurnEvent


@dataclass(frozen=True, slots=True)
class Added:
    """More text of the step that speaks now."""

    text: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """The text of this step is this instead; forget what was shown of it."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
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
class Noticed:
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """The turn waits for the person's answer to this question; the message behind it is the question in words."""

    approval_id: str


@dataclass(frozen=True, slots=True)
class Sent:
    """The message as it was delivered."""

    text: str


@dataclass(frozen=True, slots=True)
class Failed:
    error: ErrorBody


@dataclass(frozen=True, slots=True)
class Ended:
    pass


Change = Added | Replaced | Thinking | ToolStarted | ToolFinished | Noticed | Asked | Sent | Failed | Ended


@dataclass(slots=True)
class TurnView:
    """The turn of one message, as far as its events have told."""

    message_id: str
    _step: int = -1
    _attempt: int = -1
    _text: str = ""
    _whole: bool = False
    _seen: set[str] = field(default_factory=set[str])

    def apply(self, event: TurnEvent) -> list[Change]:
        """What this event changes on a screen: often one thing, nothing for what was known or is out of date."""
        if event.message_id != self.message_id or event.key in self._seen:
            return []
        self._seen.add(event.key)
        data = event.data
        match event.type:
            case "text":
                return self._speak(event)
            case "think":
                return [Thinking(_text(data, "text"))] if event.attempt >= self._attempt else []
            case "tool_start":
                arguments = data.get("arguments")
                known = cast("dict[str, object]", arguments) if isinstance(arguments, dict) else {}
                return [ToolStarted(_text(data, "call_id"), _text(data, "name"), known)]
            case "tool_complete":
                # A call that waits was not made: the question says all there is to say.
                return [] if data.get("status") == "waiting" else [_finished(data)]
            case "notice":
                return [Noticed(_text(data, "text") or _text(data, "message"))]
            case "approval":
                return [Asked(_text(data, "approval_id"))] if data.get("approval_id") else []
            case "message":
                return [Sent(_text(data, "text"))]
            case "error":
                return [Failed(failure_in(data, _text(data, "text")))]
            case "done":
                return [Ended()]
            case _:
                return []

    def _speak(self, event: TurnEvent) -> list[Change]:
        text = _text(event.data, "text")
        final = event.data.get("final") is True
        outdated = event.step == self._step and event.attempt < self._attempt and not final
        if event.step < self._step or outdated:
            return []
        if event.step > self._step:
            self._step, self._attempt, self._text, self._whole = event.step, event.attempt, "", False
        if final:
            # The finished text of a step is a fact, whichever attempt it came from.
            shown, self._text, self._whole = self._text, text, True
            return _difference(shown, text)
        if self._whole:
            return []
        if event.attempt > self._attempt:
            shown, self._text, self._attempt = self._text, text, event.attempt
            return [Replaced(text)] if shown else [Added(text)]
        self._text += text
        return [Added(text)] if text else []


def _difference(shown: str, whole: str) -> list[Change]:
    if shown == whole:
        return []
    return [Added(whole[len(shown) :])] if whole.startswith(shown) else [Replaced(whole)]


def _finished(data: dict[str, object]) -> ToolFinished:
    duration = data.get("duration_ms")
    return ToolFinished(
        call_id=_text(data, "call_id"),
        name=_text(data, "name"),
        worked=data.get("status") == "success",
        summary=_text(data, "summary") or _text(data, "error"),
        duration_ms=float(duration) if isinstance(duration, int | float) else 0.0,
    )


def failure_in(data: dict[str, object], text: str = "") -> ErrorBody:
    """The error an event or a stored reply carries; its plain text when it carries no more."""
    inner = data.get("error")
    fields = cast("dict[str, object]", inner) if isinstance(inner, dict) else data
    message = _text(fields, "message") or text or "The turn failed."
    return ErrorBody(
        code=_text(fields, "code") or "internal_error", message=message, hint=_text(fields, "hint") or None
    )


def _text(data: dict[str, object], name: str) -> str:
    value = data.get(name)
    return value if isinstance(value, str) else ""
