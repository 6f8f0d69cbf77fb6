"""What a tab said on its console and asked of the network: the last few hundred of each."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from annabelle.core.redact import Redactor
from annabelle.servers.web.wording import shown_line, shown_url

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Error, Request, Response

Level = Literal["error", "warning", "info", "debug"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info", "debug")
_LEVEL_OF: dict[str, Level] = {"error": "error", "assert": "error", "warning": "warning", "debug": "debug"}

STATIC = frozenset({"image", "font", "stylesheet", "media", "script", "manifest", "texttrack"})
_KEPT = 300
_TEXT = 500


@dataclass(frozen=True, slots=True)
class Said:
    level: Level
    text: str
    where: str


@dataclass(slots=True)
class Asked:
    method: str
    url: str
    kind: str
    outcome: str = "waits"
    """The status, or why there is none."""


class Traffic:
    """Listens to one tab. Addresses are kept without secrets; headers and bodies are not kept at all."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self.console: deque[Said] = deque(maxlen=_KEPT)
        self.requests: deque[Asked] = deque(maxlen=_KEPT)
        self._open: dict[Request, Asked] = {}
        self.new_errors = 0

    def said(self, message: ConsoleMessage) -> None:
        place = message.location
        if str(place.get("url", "")).endswith("/favicon.ico"):
            return  # the browser asks for it by itself, and few sites have one there
        where = f"{shown_url(str(place.get('url', '')), self._redact)}:{place.get('lineNumber', 0)}"
        self._note(_LEVEL_OF.get(message.type, "info"), message.text, where)

    def failed_script(self, error: Error) -> None:
        self._note("error", error.message, "")

    def asked(self, request: Request) -> None:
        entry = Asked(request.method, shown_url(request.url, self._redact), request.resource_type)
        self.requests.append(entry)
        self._open[request] = entry
        if len(self._open) > _KEPT:
            del self._open[next(iter(self._open))]

    def answered(self, response: Response) -> None:
        if (entry := self._open.get(response.request)) is not None:
            entry.outcome = str(response.status)

    def ended(self, request: Request) -> None:
        self._open.pop(request, None)

    def failed(self, request: Request) -> None:
        if (entry := self._open.pop(request, None)) is not None:
            entry.outcome = shown_line(request.failure or "failed", 60)

    def _note(self, level: Level, text: str, where: str) -> None:
        self.new_errors += level == "error"
        self.console.append(Said(level, self._redact(shown_line(text, _TEXT)), where))
