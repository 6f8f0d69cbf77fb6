"""What goes wrong in the browser, as sentences. Its own messages stay here: they repeat what was typed."""

from __future__ import annotations

import re

from annabelle.core.errors import AnnabelleError, RetryByModel, ToolTimeout, Unavailable
from annabelle.servers.web.wording import shown_line

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


def gone(message: str) -> bool:
    """Whether the tab or the browser ended."""
    return any(sign in message for sign in _GONE)


def explain(message: str, doing: str, seconds: float) -> AnnabelleError:
    """The sentence for an error of the browser. `doing` is what was tried: "Clicking"."""
    if gone(message):
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
        return RetryByModel(f"{doing} is not valid JavaScript: {shown_line(wrong.group(1), 200)}.")
    for sign, sentence in _KINDS:
        if sign in message:
            return RetryByModel(sentence, hint=NEW_SNAPSHOT)
    if "Timeout" in message or "Test timeout" in message:
        return _late(message, doing, seconds)
    return RetryByModel(f"{doing} did not work in this page.", hint=NEW_SNAPSHOT)


def _late(message: str, doing: str, seconds: float) -> AnnabelleError:
    why = next((reason for sign, reason in _REASONS if sign in message), None)
    if why is not None:
        return RetryByModel(f"{doing} did not work within {seconds:g} s: {why}.", hint=NEW_SNAPSHOT)
    return ToolTimeout(f"{doing} took longer than {seconds:g} s.", hint="Wait a moment, then look at the page again.")
