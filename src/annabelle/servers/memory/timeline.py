"""The query_timeline tool."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments
from annabelle.core.result_text import for_model, read_on
from annabelle.core.trust import Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.arguments import Agent, Label, lowest_trust, read_date_range, resolve_owner, shorten
from annabelle.servers.memory.lazy_memory import MemoryTools

if TYPE_CHECKING:
    from annabelle.store.memory import overview
else:
    overview = deferred_module("annabelle.store.memory.overview")

MAX_EVENTS = 200
SHOWN_CHARACTERS = 400

Category = Literal["facts", "conversations", "profile_changes", "skills", "contacts", "projects"]

_SKILLS = "Skills are kept by the hub: list_skills has their history."
_EVENT_TEXTS = {
    "learnt": "learnt",
    "superseded": "was corrected",
    "merged": "was merged with another",
    "deleted": "was deleted",
    "said": "said",
    "changed": "changed",
    "added": "added",
}


class TimelineEvent(BaseModel):
    """One thing that happened."""

    model_config = ConfigDict(frozen=True)

    at: datetime
    category: Category
    what: str = Field(description="learnt, superseded, merged, deleted, said, changed or added")
    id: int
    text: str
    after: str | None = Field(description="What a fact was corrected to, what was answered, or what else is known")
    trust: Trust

    def to_line(self) -> str:
        then = f" → {self.after}" if self.after else ""
        mark = for_model(" (untrusted)", " (others may have written this)") if self.trust == "untrusted" else ""
        return (
            f"{self.at:%Y-%m-%d %H:%M}  {self.category} {_EVENT_TEXTS.get(self.what, self.what)}: "
            f"{self.text}{then}{mark}"
        )


class TimelineResult(Result):
    """What happened, oldest first."""

    events: list[TimelineEvent]
    next: str | None = Field(description="Give it as `cursor` to read on; null at the end")
    note: str | None = None
    trust: Trust

    def to_text(self) -> str:
        lines = [event.to_line() for event in self.events] or ["Nothing happened then."]
        more = [read_on(f"There is more: ask again with cursor {self.next}")] if self.next else []
        return "\n".join([*lines, *more, *([self.note] if self.note else [])])


class TimelineTools(MemoryTools):
    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def query_timeline(
        self,
        date_from: Annotated[
            str, Field(max_length=40, description="From this day or time on, as in 2026-01-31 or 2026-01-31T08:00")
        ],
        date_to: Annotated[
            str | None, Field(max_length=40, description="Up to and including this day or time; by default until now")
        ] = None,
        agent_id: Agent = None,
        categories: Annotated[
            list[Category] | None, Field(description="Only these; by default all", max_length=6)
        ] = None,
        query: Annotated[Label | None, Field(description="Only what has this text in it")] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_EVENTS, description="How many events at most")] = 50,
        cursor: Annotated[
            str | None, Field(max_length=100, description="`next` of the answer before, to read on")
        ] = None,
    ) -> TimelineResult:
        """Tell what happened in a time, oldest first: what was learnt and corrected, what was talked about, which
        contacts, projects and parts of the profile changed. For questions like "what did I do last week?"."""
        owner = resolve_owner(current_call(), agent_id)
        zone = self._zone()
        since, until = read_date_range(date_from, date_to, zone)
        assert since is not None
        after = None if cursor is None else _parse_cursor(cursor)
        asked = set(categories or overview.TIMELINE_CATEGORIES)
        wanted: list[overview.TimelineCategory] = [one for one in overview.TIMELINE_CATEGORIES if one in asked]
        part = overview.TimelineQuery(since, until, wanted, query or None)
        found = await self._read(lambda c: overview.read_timeline(c, owner, part, limit + 1, after))
        events = [_to_event(event, zone) for event in found[:limit]]
        return TimelineResult(
            events=events,
            next=_format_cursor(found[limit - 1].position) if len(found) > limit else None,
            note=_SKILLS if "skills" in asked else None,
            trust=lowest_trust(*(event.trust for event in events)),
        )


def _to_event(event: overview.MemoryTimelineEvent, zone: ZoneInfo) -> TimelineEvent:
    return TimelineEvent(
        at=event.position.at.astimezone(zone),
        category=event.category,
        what=event.what,
        id=event.position.id,
        text=shorten(event.text, SHOWN_CHARACTERS),
        after=None if event.after is None else shorten(event.after, SHOWN_CHARACTERS),
        trust=event.trust,
    )


def _format_cursor(spot: overview.TimelinePosition) -> str:
    return f"{spot.at.isoformat()}_{spot.lane}_{spot.id}"


def _parse_cursor(cursor: str) -> overview.TimelinePosition:
    try:
        at, lane, row_id = cursor.split("_")
        return overview.TimelinePosition(datetime.fromisoformat(at).astimezone(UTC), int(lane), int(row_id))
    except (ValueError, OverflowError) as error:
        raise InvalidArguments(
            "cursor is not one of query_timeline's.", hint="Give `next` of the answer before.", field="cursor"
        ) from error
