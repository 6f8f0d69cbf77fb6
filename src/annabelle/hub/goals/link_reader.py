"""Reads the page of a link for a note, through the searcher, and has it summed up. What it says stays data."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, ValidationError

from annabelle.core.contract import SummaryBrief
from annabelle.core.errors import AnnabelleError, ErrorBody, Unavailable
from annabelle.core.tools import CallContext
from annabelle.core.trace import current_trace
from annabelle.durable.steps import rebuild_error
from annabelle.hub.agents.thinker_calls import ThinkerQuestions
from annabelle.hub.security.tool_access import ToolAccess

MOST_TEXT: Final = 20_000
UNREAD: Final = "The page has not been read yet."
_FETCH: Final = "searcher_web_fetch"
# A shorter text is its own summary.
_WORTH_SUMMARY: Final = 400


class _PageAnswer(BaseModel):
    model_config = ConfigDict(extra="ignore")

    title: str = ""
    description: str = ""
    content: str = ""
    note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRequest:
    """A link that a person keeps as a note."""

    url: str
    note_id: str
    user_id: str
    agent_id: str
    goal_id: str | None


@dataclass(frozen=True, slots=True)
class LinkedPage:
    """What the note of a link says; without a title if the page could not be read."""

    title: str
    content: str


class LinkReader:
    """Asks the searcher and the cheap model. Whatever fails is said in the note, and the link stays."""

    def __init__(self, access: ToolAccess, thinkers: ThinkerQuestions, summary_seconds: float) -> None:
        self._access, self._thinkers, self._seconds = access, thinkers, summary_seconds

    async def read(self, asked: LinkRequest) -> LinkedPage:
        try:
            page = await self._fetch(asked)
        except AnnabelleError as error:
            return LinkedPage("", format_link(asked.url, f"The page was not read: {error.message}"))
        text = page.content[:MOST_TEXT]
        summary = await self._summarise(asked, page.title, text)
        parts = (summary, page.description and f"Description: {page.description}", text, page.note or "")
        return LinkedPage(page.title, format_link(asked.url, *parts))

    async def _fetch(self, asked: LinkRequest) -> _PageAnswer:
        context = CallContext(caller="hub", user_id=asked.user_id, trace_id=current_trace())
        self._access.check_user(context, _FETCH)
        wanted: dict[str, object] = {"url": asked.url, "maxLength": MOST_TEXT, "includeLinks": False}
        result = await self._access.toolbox.call(_FETCH, wanted, context)
        if result.is_error:
            raise rebuild_error(result.error or ErrorBody(code="tool_failed", message=result.text))
        try:
            return _PageAnswer.model_validate(result.structured)
        except ValidationError as error:
            raise Unavailable("The searcher's answer can not be read.") from error

    async def _summarise(self, asked: LinkRequest, title: str, text: str) -> str:
        """Empty for a short text, and if no model could do it: the text itself is kept in any case."""
        if len(text) < _WORTH_SUMMARY:
            return ""
        brief = SummaryBrief(
            summary_id=f"summary:{asked.note_id}",
            user_id=asked.user_id,
            trace_id=current_trace() or "",
            title=title,
            text=text,
            goal_id=asked.goal_id,
        )
        try:
            async with asyncio.timeout(self._seconds):
                made = await self._thinkers.summarise(asked.agent_id, brief)
        except AnnabelleError as error:
            return f"There is no summary: {error.message}"
        except TimeoutError:
            return "There is no summary: the model did not answer in time."
        return f"Summary: {made.summary}" if made.summary else f"There is no summary: {made.refused}"


def format_link(url: str, *parts: str) -> str:
    """The text of a link's note: the link first, then what is known of its page."""
    return "\n\n".join([f"Link: {url}", *filter(None, parts)])
