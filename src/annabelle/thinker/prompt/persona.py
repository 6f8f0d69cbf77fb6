"""Who the agent is: its setting, its own file, the persona in memory, or the built-in default (CTX-08)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from annabelle.core.contract import AgentProfile
from annabelle.core.persona import MOST_PERSONA_CHARS, PERSONA_FILE, default_persona, read_own_persona
from annabelle.thinker.prompt.token_budget import PERSONA_TOKENS, count_tokens, truncate_to_tokens

_log = logging.getLogger(__name__)

PersonaSource = Literal["setting", "file", "memory", "default"]


@dataclass(frozen=True, slots=True)
class ActivePersona:
    """The persona of one turn, and where it was found, which is the place to edit it."""

    text: str
    source: PersonaSource
    cut: int = 0
    """Tokens that were cut."""


class PersonaResolver:
    """Checks every place for each message, so an edit needs no restart (CTX-06)."""

    def __init__(self, folder: Path, profile: AgentProfile, user_name: str, language: str = "") -> None:
        self._file = folder / PERSONA_FILE
        self._agent_id, self._setting = profile.agent_id, profile.system_prompt.strip()
        self._user_name, self._language = user_name, language
        self._read: tuple[tuple[int, int, int], str] | None = None
        self.last_source: PersonaSource | None = None
        self._warned_about: ActivePersona | None = None

    def resolve(self, remembered: Mapping[str, object]) -> ActivePersona:
        """The current persona. `remembered` is the one memory has for this user."""
        found = self._find(remembered)
        self.last_source = found.source
        cut = max(0, count_tokens(found.text) - PERSONA_TOKENS)
        text = truncate_to_tokens(found.text, PERSONA_TOKENS)
        if cut and self._warned_about != found:
            self._warned_about = found
            _log.warning("the persona (%s) is %d tokens too long for the prompt; its end is cut", found.source, cut)
        if self._user_name:
            text = f"{text}\n\nThe user's name is {self._user_name}."
        if self._language:
            text = f"{text}\n\nAnswer in {self._language}, whatever language the user writes in."
        return ActivePersona(text, found.source, cut)

    def _find(self, remembered: Mapping[str, object]) -> ActivePersona:
        if self._setting:
            return ActivePersona(self._setting, "setting")
        if text := self._from_file():
            return ActivePersona(text, "file")
        if text := _render_fields(remembered, self._agent_id):
            return ActivePersona(text, "memory")
        return ActivePersona(default_persona(self._agent_id).strip(), "default")

    def _from_file(self) -> str:
        """The file's text; empty if it is still the default text."""
        try:
            state = self._file.stat()
            version = (state.st_mtime_ns, state.st_size, state.st_ino)
            if self._read is None or self._read[0] != version:
                self._read = (version, read_own_persona(self._file, self._agent_id))
            return self._read[1]
        except FileNotFoundError:
            return ""
        except OSError as error:
            _log.warning("%s cannot be read (%s); another persona is used", self._file, error.strerror)
            return ""


def _render_fields(persona: Mapping[str, object], agent_id: str) -> str:
    """The persona fields from memory as one text; empty if all are empty."""
    name, own = _text_field(persona, "name"), _text_field(persona, "system_prompt")
    lines = [f"{label}: {words}" for key, label in _MANNERS if (words := _text_field(persona, key))]
    for key, label in _LISTS:
        if points := _list_field(persona.get(key)):
            lines += [f"{label}:", *(f"- {point}" for point in points)]
    if not (name or own or lines):
        return ""
    base = own if own else default_persona(agent_id, name).strip()
    if own and name:
        base = f"Your name is {name}.\n\n{base}"
    return "\n\n".join(part for part in (base, "\n".join(lines)) if part)[:MOST_PERSONA_CHARS]


_MANNERS = (("style", "Your style"), ("tone", "Your tone"))
_LISTS = (("capabilities", "What you are good at"), ("proactive_behaviours", "What you do without being asked"))


def _text_field(persona: Mapping[str, object], key: str) -> str:
    value = persona.get(key)
    return value.strip() if isinstance(value, str) else ""


def _list_field(value: object) -> list[str]:
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    if not isinstance(value, list):
        return []
    return [point for one in cast("list[object]", value) if (point := str(one).strip())]
