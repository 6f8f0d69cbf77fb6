"""What a call may say: its parameters with their limits."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, Field

from annabelle.servers.gmail.calendar.event import ReminderMethod

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_ADDRESS = re.compile(r"[^@\s,;:<>\"()\[\]\\]{1,64}@[^@\s,;:<>\"()\[\]\\]{1,190}")


def _plain(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("there are control characters in it")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _one_line(text: str) -> str:
    return " ".join(_plain(text).split())


def _some(text: str) -> str:
    if not text:
        raise ValueError("there is nothing in it")
    return text


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text.strip()):
        raise ValueError("it is not a mail address like ana@example.com")
    return text.strip()


class ReminderGiven(BaseModel):
    """When and how to remind."""

    method: ReminderMethod = Field(description="email or popup")
    minutes: int = Field(ge=0, le=40_320, description="Minutes before the start, at most four weeks")


Line = Annotated[str, Field(max_length=1_000), AfterValidator(_one_line)]
Summary = Annotated[Line, AfterValidator(_some)]
Body = Annotated[str, Field(max_length=50_000), AfterValidator(_plain)]
Address = Annotated[str, Field(max_length=256), AfterValidator(_address)]
Rule = Annotated[str, Field(max_length=1_000), AfterValidator(_one_line)]
Moment = Annotated[str, Field(max_length=60), AfterValidator(_one_line)]
Id = Annotated[str, Field(min_length=1, max_length=1_024), AfterValidator(_one_line), AfterValidator(_some)]

Token = Annotated[str, Field(max_length=2_000), AfterValidator(_one_line)]

EventId = Annotated[Id, Field(description="Id of the event, as list_events gives it")]
CalendarId = Annotated[
    Token | None, Field(description="Id of the calendar, as list_calendars gives it; by default the user's main one")
]
StartMoment = Annotated[
    Moment | None,
    Field(description="Start with a time of day, like 2026-12-03T09:30; in time_zone unless it has an offset"),
]
StartDay = Annotated[Moment | None, Field(description="First day of an all-day event, like 2026-12-24")]
EndMoment = Annotated[Moment | None, Field(description="End with a time of day; by default an hour after the start")]
EndDay = Annotated[
    Moment | None,
    Field(description="Last day of an all-day event, included; by default the first day"),
]
TimeZone = Annotated[
    Moment | None, Field(description="Zone like Europe/Berlin for times without an offset; by default the user's")
]
Attendees = Annotated[list[Address] | None, Field(max_length=200, description="Mail addresses of those to invite")]
