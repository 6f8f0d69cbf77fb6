"""The Markdown notes of the workspace, through the notes server, for people who may use it (MEM-11)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from annabelle.core.errors import AnnabelleError, ErrorBody, Unavailable
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trace import current_trace
from annabelle.core.trust import Trust
from annabelle.durable.steps import rebuild_error
from annabelle.hub.security.tool_access import ToolAccess

SEARCH_MARKDOWN: Final = "notes_search_notes"
READ_MARKDOWN: Final = "notes_get_note"
_REFERENCE: Final = re.compile(r"notes:(?P<path>\S[^\n]{0,299})")
_QUERY_CHARS: Final = 200
_MOST_HITS: Final = 50


class MarkdownHit(BaseModel):
    """A Markdown note with the lines that have the words."""

    model_config = ConfigDict(extra="ignore")

    title: str
    path: str
    lines: tuple[str, ...] = ()


class _HitsAnswer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    hits: tuple[MarkdownHit, ...]


class _NoteAnswer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    content: str


@dataclass(frozen=True, slots=True)
class MarkdownText:
    content: str
    trust: Trust


def find_reference(content: str) -> str | None:
    """The path in the text of a note that only refers to a Markdown note: `notes:PATH`."""
    found = _REFERENCE.fullmatch(content.strip())
    return None if found is None else found["path"]


class MarkdownNotes:
    def __init__(self, access: ToolAccess) -> None:
        self._access = access

    def may_search(self, user_id: str) -> bool:
        """Whether there is a notes server, and this person may use it."""
        if all(tool.name != SEARCH_MARKDOWN for tool in self._access.toolbox.tools(caller="hub").tools):
            return False
        policy = self._access.user_policy(_context(user_id))
        return policy is None or policy.permits(SEARCH_MARKDOWN)

    async def search(self, user_id: str, words: str, limit: int) -> list[MarkdownHit]:
        query = words[:_QUERY_CHARS].strip()
        if not query:
            return []
        result = await self._call(SEARCH_MARKDOWN, {"query": query, "limit": min(limit, _MOST_HITS)}, user_id)
        try:
            return list(_HitsAnswer.model_validate(result.structured).hits)
        except ValidationError as error:
            raise Unavailable("The answer of the notes server can not be read.") from error

    async def read(self, user_id: str, path: str) -> MarkdownText:
        """Its text, or a sentence that says why it cannot be read."""
        try:
            result = await self._call(READ_MARKDOWN, {"note": path}, user_id)
            return MarkdownText(_NoteAnswer.model_validate(result.structured).content, result.trust)
        except (AnnabelleError, ValidationError) as error:
            reason = error.message if isinstance(error, AnnabelleError) else "the answer of its server is no use."
            return MarkdownText(f"The note {path} can not be read: {reason}", "trusted")

    async def _call(self, tool: str, arguments: JsonObject, user_id: str) -> ToolResult:
        context = _context(user_id)
        self._access.check_user(context, tool)
        result = await self._access.toolbox.call(tool, arguments, context)
        if result.is_error:
            raise rebuild_error(result.error or ErrorBody(code="tool_failed", message=result.text))
        return result


def _context(user_id: str) -> CallContext:
    return CallContext(caller="hub", user_id=user_id, trace_id=current_trace())
