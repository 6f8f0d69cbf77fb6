"""Google Calendar, as far as the calendar tools use it: state, versions, series and their exceptions."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from dateutil.rrule import rrulestr
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route

from support.google_double.app import problem

Json = dict[str, Any]
BASE = "/calendar/v3"
_ID = re.compile(r"[a-v0-9]{5,1024}")


class CalendarPart:
    """Calendars of one account. A deleted event stays there as a cancelled one, as at Google."""

    def __init__(self, email: str = "ada@example.com", zone: str = "Europe/Berlin") -> None:
        self.email, self.zone = email, zone
        self.calendars: dict[str, Json] = {}
        self.events: dict[str, dict[str, Json]] = {}
        self.notified: list[str] = []
        """Events whose attendees were told of a change."""
        self.before_patch: Callable[[], None] | None = None
        """Called when a change has arrived and is not yet made."""
        self._version = 0
        self.make_calendar(email, "Ada", primary=True)

    @property
    def routes(self) -> list[BaseRoute]:
        events = f"{BASE}/calendars/{{calendar}}/events"
        return [
            Route(f"{BASE}/users/me/calendarList", self._list_calendars, methods=["GET"]),
            Route(events, self._list, methods=["GET"]),
            Route(events, self._insert, methods=["POST"]),
            Route(f"{events}/{{event}}", self._get, methods=["GET"]),
            Route(f"{events}/{{event}}", self._patch, methods=["PATCH"]),
            Route(f"{events}/{{event}}", self._delete, methods=["DELETE"]),
        ]

    def make_calendar(self, name: str, summary: str, *, role: str = "owner", primary: bool = False) -> None:
        entry: Json = {"id": name, "summary": summary, "accessRole": role, "timeZone": self.zone}
        self.calendars[name] = {**entry, "primary": True} if primary else entry
        self.events[name] = {}

    def clear(self) -> None:
        self.calendars.clear()
        self.events.clear()
        self.notified.clear()
        self.before_patch = None
        self.make_calendar(self.email, "Ada", primary=True)

    def put(self, event: Json, calendar: str = "primary") -> Json:
        """Another program writes an event."""
        return self._keep(self.events[self.email if calendar == "primary" else calendar], event)

    def live(self, calendar: str = "primary") -> list[Json]:
        return [event for event in (self._events(calendar) or {}).values() if event["status"] != "cancelled"]

    def _events(self, calendar: str) -> dict[str, Json] | None:
        return self.events.get(self.email if calendar == "primary" else calendar)

    def _keep(self, events: dict[str, Json], event: Json) -> Json:
        self._version += 1
        kept = {"status": "confirmed", "htmlLink": f"https://calendar.example/{event['id']}", **event}
        kept["etag"] = f'"{self._version}"'
        kept["organizer"] = event.get("organizer") or {"email": self.email, "self": True}
        for attendee in kept.get("attendees") or []:
            attendee.setdefault("responseStatus", "needsAction")
            if attendee["email"].lower() == self.email:
                attendee["self"] = True
        events[event["id"]] = kept
        return kept

    async def _list_calendars(self, request: Request) -> Response:
        return JSONResponse({"items": list(self.calendars.values())})

    async def _list(self, request: Request) -> Response:
        asked, events = request.query_params, self._events(request.path_params["calendar"])
        if events is None:
            return problem(404, "Not Found", "notFound")
        assert (asked["singleEvents"], asked["orderBy"]) == ("true", "startTime")
        begin, end = datetime.fromisoformat(asked["timeMin"]), datetime.fromisoformat(asked["timeMax"])
        if begin.tzinfo is None or end.tzinfo is None or end <= begin:
            return problem(400, "The specified time range is empty.", "timeRangeEmpty")
        shown = ZoneInfo(asked.get("timeZone", self.zone))
        found = [one for event in list(events.values()) for one in self._unroll(events, event, end)]
        words = asked.get("q", "").casefold().split()
        found = [
            one
            for one in found
            if one["status"] != "cancelled"
            and _moment(one["start"], shown) < end
            and _moment(one["end"], shown) > begin
            and all(word in str(one).casefold() for word in words)
        ]
        found.sort(key=lambda one: (_moment(one["start"], shown), one["id"]))
        try:
            first = int(base64.b64decode(asked["pageToken"])) if "pageToken" in asked else 0
        except ValueError:
            return problem(400, "Invalid page token value.", "invalid")
        last = first + int(asked["maxResults"])
        more = {"nextPageToken": base64.b64encode(str(last).encode()).decode()} if last < len(found) else {}
        return JSONResponse({"items": found[first:last], **more})

    async def _insert(self, request: Request) -> Response:
        events, event = self._events(request.path_params["calendar"]), await request.json()
        if events is None:
            return problem(404, "Not Found", "notFound")
        if not _ID.fullmatch(event["id"]):
            return problem(400, "Invalid resource id value.", "invalid")
        if event["id"] in events:
            return problem(409, "The requested identifier already exists.", "duplicate")
        wrong = _wrong(event)
        if wrong is not None:
            return wrong
        self._tell(request, event["id"])
        return JSONResponse(self._keep(events, event))

    async def _get(self, request: Request) -> Response:
        event = self._find(request)
        return problem(404, "Not Found", "notFound") if event is None else JSONResponse(event)

    async def _patch(self, request: Request) -> Response:
        new = await request.json()  # before anything is looked at: from here on nobody comes between
        events, event = self._events(request.path_params["calendar"]), self._find(request)
        if events is None or event is None:
            return problem(404, "Not Found", "notFound")
        if self.before_patch is not None:
            self.before_patch()
            event = self._find(request) or event
        if request.headers.get("if-match", event["etag"]) != event["etag"]:
            return problem(412, "Precondition Failed", "conditionNotMet")
        changed = _merged(event, new)
        wrong = _wrong(changed)
        if wrong is not None:
            return wrong
        self._tell(request, event["id"])
        return JSONResponse(self._keep(events, changed))

    async def _delete(self, request: Request) -> Response:
        events, event = self._events(request.path_params["calendar"]), self._find(request)
        if events is None or event is None:
            return problem(404, "Not Found", "notFound")
        if event["status"] == "cancelled":
            return problem(410, "Resource has been deleted", "deleted")
        self._tell(request, event["id"])
        self._keep(events, {**event, "status": "cancelled"})
        return Response(status_code=204)

    def _tell(self, request: Request, event_id: str) -> None:
        if request.query_params.get("sendUpdates") == "all":
            self.notified.append(event_id)

    def _find(self, request: Request) -> Json | None:
        """An event, or one of a series by the id that tells its start."""
        events = self._events(request.path_params["calendar"]) or {}
        wanted = request.path_params["event"]
        if wanted in events:
            return events[wanted]
        series = events.get(wanted.rpartition("_")[0])
        if series is None:
            return None
        end = datetime.now(UTC) + timedelta(days=3650)
        return next((one for one in self._unroll(events, series, end) if one["id"] == wanted), None)

    def _unroll(self, events: dict[str, Json], event: Json, until: datetime) -> list[Json]:
        lines = event.get("recurrence")
        if not lines:
            return [event]
        if event["status"] == "cancelled":
            return []
        day = "date" in event["start"]
        zone = ZoneInfo(event["start"].get("timeZone", self.zone))
        start, end = (_local(event[edge], zone) for edge in ("start", "end"))
        naive = [_naive(line, zone) for line in lines]
        rule = rrulestr("\n".join(naive), dtstart=start, forceset=True)
        stop = until.astimezone(zone).replace(tzinfo=None)
        found: list[Json] = []
        for begins in rule.between(start - timedelta(days=1), stop, inc=True):
            mark = f"{begins:%Y%m%d}" if day else f"{begins.replace(tzinfo=zone).astimezone(UTC):%Y%m%dT%H%M%SZ}"
            own = f"{event['id']}_{mark}"
            if own in events:
                continue  # it is different, and listed by itself
            one = {name: value for name, value in event.items() if name != "recurrence"}
            edges = {"start": _edge(begins, day, zone), "end": _edge(begins + (end - start), day, zone)}
            found.append({**one, **edges, "id": own, "recurringEventId": event["id"]})
        return found


def _naive(line: str, zone: ZoneInfo) -> str:
    """A rule with its times as clocks in the zone show them, which is how it is unrolled."""

    def shown(match: re.Match[str]) -> str:
        moment = datetime.strptime(match[0], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC)
        return f"{moment.astimezone(zone):%Y%m%dT%H%M%S}"

    return re.sub(r"\d{8}T\d{6}Z", shown, line.replace(";VALUE=DATE", ""))


def _merged(old: Json, new: Json) -> Json:
    merged = dict(old)
    for name, value in new.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict) and isinstance(old.get(name), dict):
            merged[name] = _merged(old[name], value)
        else:
            merged[name] = value
    return merged


def _wrong(event: Json) -> Response | None:
    if len(event.get("description", "")) > 8192:
        return problem(400, "The description is too long.", "invalid")
    kinds = {"date" in event["start"], "date" in event["end"]}
    if len(kinds) != 1 or not {"date", "dateTime"} & set(event["start"]):
        return problem(400, "Start and end times must either both be date or both be dateTime.", "invalid")
    try:
        zones = [ZoneInfo(event[edge].get("timeZone", "UTC")) for edge in ("start", "end")]
    except (ZoneInfoNotFoundError, ValueError):
        return problem(400, "Invalid time zone.", "invalid")
    if _moment(event["end"], zones[1]) < _moment(event["start"], zones[0]):
        return problem(400, "The specified time range is empty.", "timeRangeEmpty")
    if event.get("recurrence") and "dateTime" in event["start"] and "timeZone" not in event["start"]:
        return problem(400, "Missing time zone definition for start time.", "required")
    return None


def _moment(edge: Json, zone: ZoneInfo) -> datetime:
    if "date" in edge:
        return datetime.combine(date.fromisoformat(edge["date"]), time.min, zone).astimezone(UTC)
    return datetime.fromisoformat(edge["dateTime"]).astimezone(UTC)


def _local(edge: Json, zone: ZoneInfo) -> datetime:
    if "date" in edge:
        return datetime.combine(date.fromisoformat(edge["date"]), time.min)
    return datetime.fromisoformat(edge["dateTime"]).astimezone(zone).replace(tzinfo=None)


def _edge(moment: datetime, day: bool, zone: ZoneInfo) -> Json:
    if day:
        return {"date": moment.date().isoformat()}
    return {"dateTime": moment.replace(tzinfo=zone).isoformat(), "timeZone": zone.key}
