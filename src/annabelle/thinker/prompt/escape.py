"""Tags around data in a prompt, and the escaping that keeps data from opening or closing one (CTX-05)."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import ModelRequest, ModelRequestPart, ToolReturnPart, UserPromptPart

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
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_NAMES = "|".join(f"[{_INVISIBLE}]*+".join(map(re.escape, name)) for name in SECTIONS)
# The wide and the small sign are read as the same bracket.
_FORGED = re.compile(rf"[<＜﹤](?=[\s/／{_INVISIBLE}]*+(?:{_NAMES})[{_INVISIBLE}]*+(?!\w))", re.IGNORECASE)
_BRACKETS = ("<", "＜", "﹤")
# Half of a surrogate pair and control characters reach no model: some refuse the whole request for one.
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def escape_text(text: str) -> str:
    """The text as data inside a tag or an attribute: readable, and without a character that means anything there."""
    text = _HIDDEN.sub(" ", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def make_element(name: str, body: str, /, **attributes: object) -> str:
    """`<name key="value">body</name>`; the body must be escaped or made of elements, attributes are escaped here."""
    marks = "".join(
        f' {key}="{escape_text(str(value))}"' for key, value in attributes.items() if value not in (None, "")
    )
    return f"<{name}{marks}>{body}</{name}>"


def escape_section_tags(text: str) -> str:
    """What a person or a tool wrote, with the tags of our sections made harmless and all else as it was."""
    return _FORGED.sub("&lt;", text) if any(bracket in text for bracket in _BRACKETS) else text


def escape_message(message: ModelRequest) -> ModelRequest:
    """The same message with no tag of ours in what people and tools wrote (CTX-05)."""
    return replace(message, parts=[_escape_part(part) for part in message.parts])


def _escape_part(part: ModelRequestPart) -> ModelRequestPart:
    if isinstance(part, ToolReturnPart):
        # What is no text goes to the model as JSON, in which a tag is as good as anywhere.
        return replace(
            part, content=escape_section_tags(part.content if isinstance(part.content, str) else _as_text(part))
        )
    if not isinstance(part, UserPromptPart):
        return part
    if isinstance(part.content, str):
        return replace(part, content=escape_section_tags(part.content))
    return replace(part, content=[escape_section_tags(one) if isinstance(one, str) else one for one in part.content])


def _as_text(part: ToolReturnPart) -> str:
    return part.model_response_str()
