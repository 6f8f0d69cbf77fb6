"""Page events: dialogs, console messages, requests and errors."""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from annabelle.core.errors import AnnabelleError, RetryByModel, ToolTimeout, Unavailable
from annabelle.core.secrets.redactor import Redactor
from annabelle.servers.kit import deferred_module
from annabelle.servers.web.results import clean_line, clean_url

if TYPE_CHECKING:
    from playwright.async_api import ConsoleMessage, Error, Request, Response

if TYPE_CHECKING:
    from playwright import async_api
    from playwright.async_api import Dialog
else:
    async_api = deferred_module("playwright.async_api")


MAX_HELD = 10
MAX_DIALOGS = 60
"""The tab of a page that opens more is closed."""

Spawn = Callable[[Coroutine[None, None, object]], None]


class PageDialogs:
    """Dialogs of one tab. The first few are held, later ones dismissed; after too many the tab is given up."""

    def __init__(self, seconds: float, spawn: Spawn, news: Callable[[str], None], give_up: Callable[[], None]) -> None:
        self._seconds, self._spawn, self._news, self._give_up = seconds, spawn, news, give_up
        self._held: list[Dialog] = []
        self._seen = 0
        self.opened = asyncio.Event()

    def reset_count(self) -> None:
        """Start counting again for a new page."""
        self._seen = 0

    def add(self, dialog: Dialog) -> None:
        self._seen += 1
        if self._seen > MAX_DIALOGS:
            if self._seen == MAX_DIALOGS + 1:
                self._give_up()
            return
        if self._seen > MAX_HELD:
            if self._seen == MAX_HELD + 1:
                self._news("The page opens one dialog after another; from here on they are dismissed.")
            self._spawn(_answer_dialog(dialog, accept=False, text=None))
            return
        self._held.append(dialog)
        self.opened.set()
        asyncio.get_running_loop().call_later(self._seconds, self._expire, dialog)

    def describe(self) -> str | None:
        if not self._held:
            return None
        dialog = self._held[0]
        if dialog.type == "beforeunload":
            return "A dialog is open: the page asks whether to leave it although something may not be saved."
        return f'A dialog is open ({dialog.type}): "{clean_line(dialog.message, 500)}".'

    async def answer_dialog(self, accept: bool, text: str | None) -> str:
        if not self._held:
            raise RetryByModel("No dialog is open.", hint="Look at the page with browser_snapshot.")
        dialog = self._held.pop(0)
        self._update()
        try:
            await _answer_dialog(dialog, accept, text if dialog.type == "prompt" else None)
        except (TimeoutError, async_api.Error):
            raise RetryByModel("The dialog was gone already.", hint="Look at the page with browser_snapshot.") from None
        return f"{'Accepted' if accept else 'Dismissed'} the {dialog.type} dialog."

    def forget(self) -> None:
        self._held.clear()
        self._update()

    def _expire(self, dialog: Dialog) -> None:
        if dialog in self._held:
            self._held.remove(dialog)
            self._update()
            self._news(f"A dialog ({dialog.type}) was dismissed because nobody answered it for {self._seconds:g} s.")
            self._spawn(_answer_dialog(dialog, accept=False, text=None))

    def _update(self) -> None:
        if not self._held:
            self.opened.clear()


async def _answer_dialog(dialog: Dialog, accept: bool, text: str | None) -> None:
    async with asyncio.timeout(5):
        if accept:
            await dialog.accept(text) if text is not None else await dialog.accept()
        else:
            await dialog.dismiss()


Level = Literal["error", "warning", "info", "debug"]
LEVELS: tuple[Level, ...] = ("error", "warning", "info", "debug")
_LEVEL_OF: dict[str, Level] = {"error": "error", "assert": "error", "warning": "warning", "debug": "debug"}

STATIC = frozenset({"image", "font", "stylesheet", "media", "script", "manifest", "texttrack"})
_KEPT = 300
_TEXT = 500


@dataclass(frozen=True, slots=True)
class ConsoleLine:
    level: Level
    text: str
    where: str


@dataclass(slots=True)
class RequestLine:
    method: str
    url: str
    kind: str
    outcome: str = "waits"
    """Status code, or why there is none."""


class PageTraffic:
    """Console and requests of one tab. URLs are redacted; headers and bodies are not recorded."""

    def __init__(self, redact: Redactor) -> None:
        self._redact = redact
        self.console: deque[ConsoleLine] = deque(maxlen=_KEPT)
        self.requests: deque[RequestLine] = deque(maxlen=_KEPT)
        self._open: dict[Request, RequestLine] = {}
        self.new_errors = 0

    def add_console(self, message: ConsoleMessage) -> None:
        place = message.location
        if str(place.get("url", "")).endswith("/favicon.ico"):
            return  # browsers request it unasked, and few sites have one
        where = f"{clean_url(str(place.get('url', '')), self._redact)}:{place.get('lineNumber', 0)}"
        self._note(_LEVEL_OF.get(message.type, "info"), message.text, where)

    def add_script_error(self, error: Error) -> None:
        self._note("error", error.message, "")

    def add_request(self, request: Request) -> None:
        entry = RequestLine(request.method, clean_url(request.url, self._redact), request.resource_type)
        self.requests.append(entry)
        self._open[request] = entry
        if len(self._open) > _KEPT:
            del self._open[next(iter(self._open))]

    def add_response(self, response: Response) -> None:
        if (entry := self._open.get(response.request)) is not None:
            entry.outcome = str(response.status)

    def finish_request(self, request: Request) -> None:
        self._open.pop(request, None)

    def fail_request(self, request: Request) -> None:
        if (entry := self._open.pop(request, None)) is not None:
            entry.outcome = clean_line(request.failure or "failed", 60)

    def _note(self, level: Level, text: str, where: str) -> None:
        self.new_errors += level == "error"
        self.console.append(ConsoleLine(level, self._redact(clean_line(text, _TEXT)), where))


NEW_SNAPSHOT = "Take a new browser_snapshot and use a ref from it."

_NETWORK = {
    "ERR_NAME_NOT_RESOLVED": "its name was not found",
    "ERR_CONNECTION_REFUSED": "it refuses connections",
    "ERR_CONNECTION_RESET": "it broke the connection off",
    "ERR_CONNECTION_CLOSED": "it broke the connection off",
    "ERR_EMPTY_RESPONSE": "it answered nothing",
    "ERR_INVALID_HTTP_RESPONSE": "it does not answer as a web site does",
    "ERR_TOO_MANY_REDIRECTS": "it redirects in a circle",
    "ERR_TUNNEL_CONNECTION_FAILED": "it could not be reached",
    "ERR_INVALID_AUTH_CREDENTIALS": "it asks for a name and password before it shows anything, which is not supported",
    "ERR_UNSAFE_PORT": "browsers do not open this port",
    "ERR_SSL_PROTOCOL_ERROR": "it does not speak TLS properly",
}
_CODE = re.compile(r"net::(ERR_[A-Z_0-9]+)")

_SYNTAX = re.compile(r"SyntaxError: (.*)")

_REASONS = (
    ("intercepts pointer events", "another element covers it"),
    ("element is not visible", "it is not visible"),
    ("element is not enabled", "it is disabled"),
    ("element is outside of the viewport", "it can not be scrolled into view"),
    ("element is not stable", "it keeps moving"),
    ("element was detached", "it left the page"),
    ("element is not editable", "it can not be edited"),
)
_KINDS = (
    ("is not an <input>", "This element can not be typed into."),
    ("cannot be filled", "This element can not be typed into."),
    ("Cannot type text into", "This field takes another kind of value."),
    ("Malformed value", "This field takes another kind of value."),
    ("Not a checkbox or radio button", "This element is neither a checkbox nor a radio button."),
    ("did not change its state", "A click did not change its state."),
    ("is not a valid selector", "This is not a valid CSS selector."),
    ("Unexpected token", "This is not a valid CSS selector."),
    ("Unknown key", "The browser knows no such key."),
)
_GONE = ("has been closed", "Page crashed", "Target crashed", "Connection closed", "browser has disconnected")


class BecameDownload(RetryByModel):
    """The address is a file, not a page."""


def is_gone(message: str) -> bool:
    return any(sign in message for sign in _GONE)


def explain_browser_error(message: str, doing: str, seconds: float) -> AnnabelleError:
    """Turn a browser error into an Annabelle error. `doing` names the action, such as "Clicking"."""
    if is_gone(message):
        return Unavailable(
            f"{doing} was cut short: the page or the browser ended, and what it did by then is not known.",
            hint="Call again; the next call opens what is needed.",
        )
    if "Download is starting" in message or "net::ERR_ABORTED" in message:
        return BecameDownload("The address gave nothing to show.", hint="Try another one.")
    if (code := _CODE.search(message)) is not None:
        name = code.group(1)
        certificate = "its certificate is not valid" if "CERT" in name else None
        why = _NETWORK.get(name) or certificate or name.removeprefix("ERR_").replace("_", " ").lower()
        return Unavailable(f"The site was not opened: {why}.", hint="Check the address, or try again later.")
    if "is interrupted by another navigation" in message:
        return RetryByModel(f"{doing} was overtaken: the page went somewhere else.", hint=NEW_SNAPSHOT)
    if (wrong := _SYNTAX.search(message)) is not None:
        return RetryByModel(f"{doing} is not valid JavaScript: {clean_line(wrong.group(1), 200)}.")
    for sign, sentence in _KINDS:
        if sign in message:
            return RetryByModel(sentence, hint=NEW_SNAPSHOT)
    if "Timeout" in message or "Test timeout" in message:
        return _timeout_error(message, doing, seconds)
    return RetryByModel(f"{doing} did not work in this page.", hint=NEW_SNAPSHOT)


def _timeout_error(message: str, doing: str, seconds: float) -> AnnabelleError:
    why = next((reason for sign, reason in _REASONS if sign in message), None)
    if why is not None:
        return RetryByModel(f"{doing} did not work within {seconds:g} s: {why}.", hint=NEW_SNAPSHOT)
    return ToolTimeout(f"{doing} took longer than {seconds:g} s.", hint="Wait a moment, then look at the page again.")
