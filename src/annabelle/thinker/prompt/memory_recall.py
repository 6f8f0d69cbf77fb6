"""Asks memory, at the start of a turn, for the profile and for memories that fit the message (CTX-01).

Both are one call if the agent may use both tools. It has two seconds; the first call of a process has more, because
memory opens its database then. If memory is down, slow or not allowed, the turn goes on without it and the trace says
so.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal, cast

from annabelle.core.contract import ToolCall, TurnBrief
from annabelle.core.errors import AnnabelleError, NotAllowed
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Trust
from annabelle.policy.intent.own_words import own_words
from annabelle.thinker.hub_client import HubTools
from annabelle.thinker.prompt.escape import USER_PROFILE, escape_text, make_element
from annabelle.thinker.prompt.token_budget import (
    PROFILE_TOKENS,
    FittedPieces,
    PromptLayer,
    fit_pieces,
    truncate_to_tokens,
)

_FAINT = 0.25
"""Minimum similarity of an exchange that shares no word with the message."""


@dataclass(frozen=True, slots=True)
class RememberedExchange:
    """One exchange of an earlier conversation."""

    user: str
    assistant: str
    speaker: str = ""
    trust: Trust = "trusted"


@dataclass(frozen=True, slots=True)
class RecalledMemory:
    """A fact, or an exchange with its neighbours; untrusted if others may have written it."""

    kind: Literal["fact", "said"]
    id: int
    at: datetime | None
    trust: Trust = "trusted"
    fact: str = ""
    source: str = ""
    tools: tuple[str, ...] = ()
    read_from: int | None = None
    exchange: RememberedExchange | None = None
    before: RememberedExchange | None = None
    after: RememberedExchange | None = None


def parse_memories(structured: Mapping[str, object]) -> tuple[RecalledMemory, ...]:
    """The memories in a result of `retrieve_memories`, best first; invalid rows are skipped."""
    rows = [*_read_rows(structured.get("facts")), *_read_rows(structured.get("conversations"))]
    return tuple(memory for row in rows if (memory := _parse_memory(row)) is not None)


def _parse_memory(row: Mapping[str, object]) -> RecalledMemory | None:
    if fact := _read_text(row, "fact"):
        tools, read_from = row.get("tools"), row.get("conversation_id")
        return RecalledMemory(
            "fact",
            _read_id(row),
            _read_time(row, "created_at", "updated_at"),
            _read_trust(row),
            fact=fact,
            source=_read_text(row, "source"),
            tools=tuple(str(name) for name in cast("list[object]", tools)) if isinstance(tools, list) else (),
            read_from=read_from if isinstance(read_from, int) else None,
        )
    said = _parse_exchange(row)
    if said is None or _is_faint(row.get("parts")):
        return None
    at = _read_time(row, "said_at", "created_at")
    before, after = _parse_exchange(row.get("before")), _parse_exchange(row.get("after"))
    return RecalledMemory("said", _read_id(row), at, _read_trust(row), exchange=said, before=before, after=after)


def _is_faint(parts: object) -> bool:
    if not isinstance(parts, Mapping):
        return False
    known = cast("Mapping[str, object]", parts)
    closeness = known.get("vector")
    return known.get("text") == 0 and isinstance(closeness, int | float) and closeness < _FAINT


def _parse_exchange(value: object) -> RememberedExchange | None:
    if not isinstance(value, Mapping):
        return None
    row = cast("Mapping[str, object]", value)
    # Text the user pasted is not their own, so it is not recalled as theirs.
    user = own_words(_read_text(row, "user_message")).strip()
    said = RememberedExchange(user, _read_text(row, "agent_response"), _read_text(row, "speaker"), _read_trust(row))
    return said if said.user or said.assistant else None


def _read_trust(row: Mapping[str, object]) -> Trust:
    return "trusted" if row.get("trust", "trusted") == "trusted" else "untrusted"


def _read_rows(value: object) -> list[Mapping[str, object]]:
    if not isinstance(value, list):
        return []
    return [cast("Mapping[str, object]", row) for row in cast("list[object]", value) if isinstance(row, Mapping)]


def _read_text(row: Mapping[str, object], name: str) -> str:
    value = row.get(name)
    return value.strip() if isinstance(value, str) else ""


def _read_id(row: Mapping[str, object]) -> int:
    value = row.get("id")
    return value if isinstance(value, int) else 0


def _read_time(row: Mapping[str, object], *names: str) -> datetime | None:
    for name in names:
        value = row.get(name)
        if isinstance(value, str):
            try:
                moment = datetime.fromisoformat(value)
            except ValueError:
                continue
            return moment if moment.tzinfo is not None else None
    return None


_PERSONA = "persona"
_VALUE_TOKENS = 120
_DEEPEST = 6


@dataclass(frozen=True, slots=True)
class UserProfile:
    """The profile from `get_profile`; `untrusted` are paths of fields that others may have written."""

    content: Mapping[str, object] = field(default_factory=dict[str, object])
    untrusted: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, structured: Mapping[str, object]) -> UserProfile:
        content, marked = structured.get("profile"), structured.get("untrusted_fields")
        paths = {str(path) for path in cast("list[object]", marked)} if isinstance(marked, list) else set[str]()
        if not isinstance(content, dict):
            return cls()
        # Without a list of fields, the label of the whole profile holds for each field.
        everything = structured.get("trust", "trusted") != "trusted" and not paths
        profile = cast("dict[str, object]", content)
        return cls(profile, frozenset(path for path, _ in _iterate_fields(profile)) if everything else frozenset(paths))

    def persona(self) -> dict[str, object]:
        """The persona fields, without untrusted ones: those must not become instructions."""
        section = self.content.get(_PERSONA)
        if not isinstance(section, dict):
            return {}
        fields = cast("dict[str, object]", section)
        return {name: value for name, value in fields.items() if f"{_PERSONA}.{name}" not in self.untrusted}


def build_profile_layer(profile: UserProfile) -> PromptLayer:
    """`<user-profile>` with a line per non-empty field; lines that do not fit are left out."""
    about = {name: value for name, value in profile.content.items() if name != _PERSONA}
    lines = [_render_field(path, value, profile.untrusted) for path, value in _iterate_fields(about)]
    fitted = fit_pieces(lines, PROFILE_TOKENS) if lines else FittedPieces(())
    if not fitted.pieces:
        return PromptLayer("", 0, fitted.left_out)
    text = make_element(USER_PROFILE, "\n" + "\n".join(fitted.pieces) + "\n")
    return PromptLayer(text, len(fitted.pieces), fitted.left_out)


def _render_field(path: str, value: object, untrusted: frozenset[str]) -> str:
    name = path.removeprefix("user.")
    words = ", ".join(map(str, cast("list[object]", value))) if isinstance(value, list) else str(value)
    # One line, so that a value cannot look like another field.
    words = truncate_to_tokens(" ".join(words.split()), _VALUE_TOKENS)
    mark = " [untrusted]" if path in untrusted else ""
    return f"{escape_text(name)}: {escape_text(words)}{mark}"


def _iterate_fields(document: Mapping[str, object], above: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    for key, value in document.items():
        path = f"{above}.{key}" if above else str(key)
        if isinstance(value, dict) and depth < _DEEPEST:
            yield from _iterate_fields(cast("dict[str, object]", value), path, depth + 1)
        elif value not in (None, "", [], {}):
            yield path, value


GET_PROFILE: Final = "memory_get_profile"
RETRIEVE: Final = "memory_retrieve_memories"
MOST_MEMORIES: Final = 5
_SECONDS: Final = 2.0
_FIRST_SECONDS: Final = 6.0
_QUERY_CHARS: Final = 1_000
_TOO_SLOW: Final = "too slow"
_WORD = re.compile(r"\w")


@dataclass(frozen=True, slots=True)
class RecalledContext:
    """What memory returned; `trouble` tells the trace what failed."""

    profile: UserProfile = field(default_factory=UserProfile)
    memories: tuple[RecalledMemory, ...] = ()
    kept_back: int = 0
    """How many untrusted memories were held back; the model can ask for them."""
    trouble: tuple[str, ...] = ()


class MemoryRecall:
    """One per thinker. Its calls have no call id, because they only read."""

    def __init__(self, hub: HubTools, seconds: float = _SECONDS, first_seconds: float = _FIRST_SECONDS) -> None:
        self._hub, self._seconds = hub, seconds
        self._timeout = first_seconds

    async def recall(self, brief: TurnBrief, text: str) -> RecalledContext:
        """What memory has for this message; never raises."""
        trouble: list[str] = []
        allowed = await self._allowed_tools(trouble)
        profile: object = None
        found: Mapping[str, object] | None = None
        if RETRIEVE in allowed and _WORD.search(text) is not None:
            # Only trusted memories, otherwise every turn would start tainted.
            about: JsonObject = {
                "query": text[:_QUERY_CHARS], "limit": MOST_MEMORIES, "fill": True, "trusted_only": True,
            }  # fmt: skip
            with_profile: JsonObject = {"include_profile": True} if GET_PROFILE in allowed else {}
            found = await self._call_tool(brief, RETRIEVE, about | with_profile, trouble)
            if with_profile and trouble[-1:] == [f"{RETRIEVE}: {NotAllowed.code}"]:
                # The person may be allowed less than the agent: try without the profile.
                with_profile, found = {}, await self._call_tool(brief, RETRIEVE, about, trouble)
            profile = found.get("profile") if found is not None and with_profile else None
        # If the search failed, get at least the profile, unless memory is too slow.
        if found is None and GET_PROFILE in allowed and f"{RETRIEVE}: {_TOO_SLOW}" not in trouble:
            profile = await self._call_tool(brief, GET_PROFILE, {}, trouble)
        return RecalledContext(
            profile=UserProfile.parse(cast("Mapping[str, object]", profile) if isinstance(profile, Mapping) else {}),
            memories=parse_memories(found or {}),
            kept_back=_read_count((found or {}).get("kept_back")),
            trouble=tuple(dict.fromkeys(trouble)),
        )

    async def _allowed_tools(self, trouble: list[str]) -> frozenset[str]:
        """The memory tools this agent may use."""
        try:
            async with asyncio.timeout(self._seconds):
                listed = await self._hub.tools()
        except (AnnabelleError, TimeoutError) as error:
            trouble.append(f"tools: {_describe_error(error)}")
            return frozenset()
        return frozenset(tool.name for tool in listed.tools if tool.server == "memory")

    async def _call_tool(
        self, brief: TurnBrief, name: str, arguments: JsonObject, trouble: list[str]
    ) -> Mapping[str, object] | None:
        call = ToolCall(name=name, arguments=arguments, message_id=brief.message_id)
        try:
            async with asyncio.timeout(self._timeout):
                result = await self._hub.call(call, brief.user_id)
        except (AnnabelleError, TimeoutError) as error:
            trouble.append(f"{name}: {_describe_error(error)}")
            return None
        finally:
            self._timeout = self._seconds
        if result.is_error or result.structured is None:
            trouble.append(f"{name}: {result.error.code if result.error is not None else 'no structured result'}")
            return None
        return result.structured


def _read_count(value: object) -> int:
    return value if isinstance(value, int) else 0


def _describe_error(error: AnnabelleError | TimeoutError) -> str:
    return error.code if isinstance(error, AnnabelleError) else _TOO_SLOW
