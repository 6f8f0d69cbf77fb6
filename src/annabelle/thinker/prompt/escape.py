"""Tags around data in a prompt, and the escaping that keeps data from opening or closing one (CTX-05)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    SystemPromptPart,
    ToolReturnPart,
    UserPromptPart,
)

USER_PROFILE: Final = "user-profile"
SUMMARY: Final = "summary"
NOW: Final = "now"
EARLIER_SESSIONS: Final = "earlier-sessions"
PLAYBOOKS: Final = "playbooks"
AVAILABLE_SKILLS: Final = "available_skills"
WORKSPACE: Final = "workspace"
THINKING: Final = "thinking"
MEMORIES: Final = "memories"
UNASKED: Final = "said-unasked"
WORKING_MATERIAL: Final = "working-material"
WORKED_BEFORE: Final = "worked-before"

# The sections of a turn's prompt. Rare names, because pasted text often holds <user> or <profile>.
SECTIONS: Final = (
    USER_PROFILE, SUMMARY, NOW, EARLIER_SESSIONS, PLAYBOOKS, AVAILABLE_SKILLS, WORKSPACE, THINKING, MEMORIES,
    UNASKED, WORKING_MATERIAL, WORKED_BEFORE,
)  # fmt: skip

# Invisible characters and those that change the reading direction: a tag name with one in it still reads as the name.
_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U000e0000-\U000e0fff"
)
_NAMES = "|".join(f"[{_INVISIBLE}]*+".join(map(re.escape, name)) for name in SECTIONS)
# Full-width and small forms read as the same bracket.
_FORGED = re.compile(rf"[<＜﹤](?=[\s/／{_INVISIBLE}]*+(?:{_NAMES})[{_INVISIBLE}]*+(?!\w))", re.IGNORECASE)
_BRACKETS = ("<", "＜", "﹤")
# Some providers refuse a request with lone surrogates or control characters.
_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def escape_text(text: str) -> str:
    """Escape text for use inside a tag or an attribute."""
    text = _HIDDEN.sub(" ", text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


def make_element(name: str, body: str, /, **attributes: object) -> str:
    """`<name key="value">body</name>`; the body must be escaped or made of elements, attributes are escaped here."""
    marks = "".join(
        f' {key}="{escape_text(str(value))}"' for key, value in attributes.items() if value not in (None, "")
    )
    return f"<{name}{marks}>{body}</{name}>"


def escape_section_tags(text: str) -> str:
    """Escape only the tags of our sections; leave all other text as it is."""
    return _FORGED.sub("&lt;", text) if any(bracket in text for bracket in _BRACKETS) else text


def escape_message(message: ModelRequest) -> ModelRequest:
    """Escape our section tags in what people and tools wrote (CTX-05)."""
    return replace(message, parts=[_escape_part(part) for part in message.parts])


def _escape_part(part: ModelRequestPart) -> ModelRequestPart:
    if isinstance(part, ToolReturnPart):
        # Other content goes to the model as JSON, which may hold a tag too.
        text = part.content if isinstance(part.content, str) else part.model_response_str()
        return replace(part, content=escape_section_tags(text))
    if not isinstance(part, UserPromptPart):
        return part
    if isinstance(part.content, str):
        return replace(part, content=escape_section_tags(part.content))
    return replace(part, content=[escape_section_tags(one) if isinstance(one, str) else one for one in part.content])


def cut_text(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars]} [{len(text) - max_chars} characters left out]"


def make_prompt(instructions: str, data: Sequence[str], ending: str) -> list[ModelMessage]:
    """A one-shot prompt: instructions, tagged data, and the words the answer follows."""
    user = UserPromptPart(content="\n".join(data) + f"\n\n{ending}")
    return [ModelRequest(parts=[SystemPromptPart(content=instructions), user])]
