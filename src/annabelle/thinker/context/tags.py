"""Tags around what the model is given as data, so that no data can close one or open another (CTX-05)."""

from __future__ import annotations

import re
from typing import Final

USER_PROFILE: Final = "user-profile"
SUMMARY: Final = "summary"
NOW: Final = "now"
EARLIER_SESSIONS: Final = "earlier-sessions"
PLAYBOOKS: Final = "playbooks"
WORKSPACE: Final = "workspace"
THINKING: Final = "thinking"
MEMORIES: Final = "memories"

# The sections of a turn's prompt. Few and seldom names: what people paste is full of <user> and <profile>.
SECTIONS: Final = (USER_PROFILE, SUMMARY, NOW, EARLIER_SESSIONS, PLAYBOOKS, WORKSPACE, THINKING, MEMORIES)

# Characters that take no place on a screen or turn the direction of reading: a name with one in it still reads as the
# name, for a person and for a model.
_UNSEEN = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_NAMES = "|".join(f"[{_UNSEEN}]*+".join(map(re.escape, name)) for name in SECTIONS)
# The wide and the small sign are read as the same bracket.
_FORGED = re.compile(rf"[<＜﹤](?=[\s/／{_UNSEEN}]*+(?:{_NAMES})[{_UNSEEN}]*+(?!\w))", re.IGNORECASE)
_BRACKETS = ("<", "＜", "﹤")
# Half of a surrogate pair and control characters reach no model: some refuse the whole request for one.
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def escaped(text: str) -> str:
    """The text as data inside a tag or an attribute: readable, and without a character that means anything there."""
    text = _HIDDEN.sub(" ", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def element(name: str, body: str, /, **attributes: object) -> str:
    """`<name key="value">body</name>`; the body must be escaped or made of elements, attributes are escaped here."""
    marks = "".join(f' {key}="{escaped(str(value))}"' for key, value in attributes.items() if value not in (None, ""))
    return f"<{name}{marks}>{body}</{name}>"


def defused(text: str) -> str:
    """What a person or a tool wrote, with the tags of our sections made harmless and all else as it was."""
    return _FORGED.sub("&lt;", text) if any(bracket in text for bracket in _BRACKETS) else text
