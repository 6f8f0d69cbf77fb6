"""Tags around what the model is given as data, so that no data can close one or open another (CTX-05)."""

from __future__ import annotations

import re
from typing import Final

USER_PROFILE: Final = "user-profile"
NOW: Final = "now"
MEMORIES: Final = "memories"

# The sections of a turn's prompt. Few and seldom names: what people paste is full of <user> and <profile>.
_FORGED = re.compile(rf"<(?=\s*/?\s*(?:{USER_PROFILE}|{NOW}|{MEMORIES})\b)", re.IGNORECASE)
# Half of a surrogate pair and control characters reach no model: some refuse the whole request for one.
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def escaped(text: str) -> str:
    """The text as data inside a tag or an attribute: readable, and without a character that means anything there."""
    text = _HIDDEN.sub(" ", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def element(name: str, body: str, **attributes: object) -> str:
    """`<name key="value">body</name>`; the body must be escaped or made of elements, attributes are escaped here."""
    marks = "".join(f' {key}="{escaped(str(value))}"' for key, value in attributes.items() if value not in (None, ""))
    return f"<{name}{marks}>{body}</{name}>"


def defused(text: str) -> str:
    """What a person or a tool wrote, with the tags of our sections made harmless and all else as it was."""
    return _FORGED.sub("&lt;", text) if "<" in text else text
