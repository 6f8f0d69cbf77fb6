"""`/skills`: what runs by itself, and what came of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Final

from fastapi import Path, Query, Request
from pydantic import ConfigDict, Field

from annabelle.core.errors import TooLarge
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trust import Risk
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.memory.idle_threads import idle_seconds
from annabelle.hub.skills.skill_files import scan_skill
from annabelle.skills.skill_input import MissedPolicy
from annabelle.store import skills
from annabelle.store.skills import FireState, StoredFire, StoredSkill
from annabelle.toolbox.guard import threat_kinds

router = ApiRouter("skills")
_MOST_PAYLOAD: Final = 64 * 1024
_TOOL_NAMES: Final = {"notify": "notify_on_completion", "missed": "if_missed"}
"""What the tools for skills call a field of an update."""
SkillName = Annotated[str, Path(max_length=200, examples=["stretch"], description="Its number or its name")]


class FireView(ApiAnswer):
    """One time a skill was due, and what came of it."""

    fire_id: str
    skill_id: int
    name: str
    due_at: datetime
    state: FireState
    started_at: datetime | None
    finished_at: datetime | None
    result: str | None


class SkillView(ApiAnswer):
    """One skill, and when it runs."""

    skill_id: int
    name: str
    when: str = Field(description="In words, in your time zone")
    enabled: bool
    disabled_why: str | None
    next_due: datetime | None
    trigger_type: str
    trigger: JsonObject
    plan: JsonObject | None = Field(description="The call it makes")
    instructions: str
    order: JsonObject = Field(description="What you said yes to: in its runs this counts as your words")
    made_after: list[str] | None = Field(description="What was read from outside before it was made")
    preflight: JsonObject | None = Field(description="The call that shows whether there is anything to do")
    confirmed_at: datetime | None = Field(description="When you said yes to it; before that it does not run")
    failures: int = Field(description="In a row")
    missed: str = Field(description="What happens to a fire that was missed: run, skip or list")
    notify: bool = Field(description="Whether you are told what came of it")
    required_tools: list[str]
    missing_tools: list[str] = Field(description="Those it names that are not there now")
    has_webhook: bool
    last_fire: FireView | None = Field(description="The newest time it was due, and what came of it")
    thread_id: str
    created_at: datetime


class AfterConversation(ApiAnswer):
    """Work that follows every conversation, and so has no schedule."""

    name: str
    when: str


class SkillList(ApiAnswer):
    skills: list[SkillView]
    after_conversations: list[AfterConversation]


class FireList(ApiAnswer):
    fires: list[FireView]


class UpcomingFire(ApiAnswer):
    """A time at which a skill will be due."""

    due_at: datetime
    skill_id: int
    name: str


class UpcomingList(ApiAnswer):
    fires: list[UpcomingFire]


class WebhookView(ApiAnswer):
    url: str = Field(description="Post to it; whoever knows it can set the skill off")


class WebhookAccepted(ApiAnswer):
    fire_id: str


class SkillScan(ApiBody):
    """A folder among the skills of the home."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"folder": "pdf-tools"}]})

    folder: str = Field(min_length=1, max_length=200, pattern=r"^[\w.-]+(/[\w.-]+)?$")


class ScannedFile(ApiAnswer):
    """What the guardian says of one file."""

    file: str
    risk: Risk
    threats: list[str]
    unscanned: bool = Field(description="The guardian is switched off, or was not to be reached")


class SkillScanResult(ApiAnswer):
    """What was scanned, and the files that are not without risk."""

    hash: str = Field(description="Of all files of the skill")
    texts: int = Field(description="How many files have text")
    found: list[ScannedFile]


class SkillUpdate(ApiBody):
    """What is to change; what is left out stays. It counts as your yes to what the skill does then."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"when": "every weekday at 8:30", "notify": False}]})

    name: str | None = Field(default=None, min_length=1, max_length=200)
    when: str | None = Field(default=None, min_length=1, max_length=200, description="In words, as in a chat")
    schedule: str | None = Field(default=None, min_length=1, max_length=200, description="Or as a cron expression")
    instructions: str | None = Field(default=None, min_length=1, max_length=8_000)
    message: str | None = Field(
        default=None, min_length=1, max_length=4_000, description="What a reminder says instead"
    )
    required_tools: list[Annotated[str, Field(min_length=1, max_length=200)]] | None = Field(
        default=None, max_length=100, description="All tools that its runs may use"
    )
    notify: bool | None = None
    missed: MissedPolicy | None = None


class SkillSwitch(ApiBody):
    """Whether it runs when it is due."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"enabled": False}]})

    enabled: bool


@router.get("/skills", **document("What runs by itself"))
async def list_skills(hub: TheHub, caller: Caller) -> SkillList:
    """Your own skills, the next due first."""
    found = await hub.services.skills.list(caller.user_id)
    last = await hub.storage.database.read(lambda conn: skills.list_last_fires(conn, caller.user_id))
    views = [_to_view(hub, skill, last.get(skill.id)) for skill in found]
    return SkillList(skills=views, after_conversations=_after_conversations(hub.base.settings))


@router.get("/fires/upcoming", **document("What runs in the coming days"))
async def list_upcoming(
    hub: TheHub, caller: Caller, days: Annotated[int, Query(ge=1, le=31, description="How many")] = 7
) -> UpcomingList:
    """In order. Of a skill that runs more often than every quarter of an hour, only the first runs."""
    found = await hub.services.skills.list_upcoming(caller.user_id, timedelta(days=days))
    return UpcomingList(fires=[UpcomingFire(due_at=at, skill_id=one.id, name=one.name) for at, one in found])


@router.get("/skills/{named}", **document("One skill", 404, 409, 503))
async def get_skill(named: SkillName, hub: TheHub, caller: Caller) -> SkillView:
    return await _show(hub, await hub.services.skills.get(named, caller.user_id))


@router.post("/skills/{named}/switch", **document("Switch a skill on or off", 404, 409, 503, body=SkillSwitch))
async def switch_skill(named: SkillName, hub: TheHub, caller: Caller, request: Request) -> SkillView:
    """A skill that is off keeps its schedule and does nothing."""
    wanted = await read_body(request, SkillSwitch)
    changed = await hub.services.skills.update(named, {"enabled": wanted.enabled}, caller.user_id, by_person=True)
    return await _show(hub, changed)


@router.post("/skills/{named}/update", **document("Change a skill", 404, 409, 503, body=SkillUpdate))
async def update_skill(named: SkillName, hub: TheHub, caller: Caller, request: Request) -> SkillView:
    """A skill that is off stays off, and one that was only offered still waits for your yes."""
    asked = (await read_body(request, SkillUpdate)).model_dump(exclude_none=True)
    given = {_TOOL_NAMES.get(name, name): value for name, value in asked.items()}
    return await _show(hub, await hub.services.skills.update(named, given, caller.user_id, by_person=True))


@router.post("/skills/{named}/run", **document("Run a skill now", 404, 409, 503))
async def run_skill(named: SkillName, hub: TheHub, caller: Caller) -> FireView:
    """Once, beside its schedule."""
    return _to_fire(await hub.services.skills.run_now(named, caller.user_id))


@router.post("/skills/{named}/webhook", **document("Give a skill an address of its own", 404, 409, 503))
async def make_webhook(named: SkillName, hub: TheHub, caller: Caller) -> WebhookView:
    """Whoever posts to it sets the skill off. The address is shown this once, and an earlier one is void."""
    secret = await hub.services.skills.make_webhook(named, caller.user_id)
    return WebhookView(url=f"{hub.base.address}/hooks/{secret}")


@router.post("/hooks/{secret}", status_code=202, **document("Set off the skill of a webhook", 404, 409, 503))
async def call_webhook(
    secret: Annotated[str, Path(max_length=200, description="From the address of the webhook")],
    hub: TheHub,
    request: Request,
) -> WebhookAccepted:
    """Answers at once. What is sent is data from outside for the run, never an instruction."""
    body = await request.body()
    if len(body) > _MOST_PAYLOAD:
        raise TooLarge(f"More than {_MOST_PAYLOAD // 1024} KB were sent.", hint="Send less.")
    fire = await hub.services.skills.fire_by_webhook(secret, body.decode(errors="replace"))
    return WebhookAccepted(fire_id=fire.id)


@router.post("/skills/{named}/delete", **document("Delete a skill", 404, 409, 503))
async def delete_skill(named: SkillName, hub: TheHub, caller: Caller) -> SkillView:
    """For good. What it did stays in the history."""
    return await _show(hub, await hub.services.skills.delete(named, caller.user_id))


@router.get("/fires", **document("What came of skills", 404, 409, 503))
async def list_fires(
    hub: TheHub,
    caller: Caller,
    skill: Annotated[str | None, Query(max_length=200, description="Only of this one")] = None,
    limit: Annotated[int, Query(ge=1, le=500, description="At most so many")] = 50,
) -> FireList:
    """Newest first."""
    found = await hub.services.skills.history(caller.user_id, skill, limit)
    return FireList(fires=[_to_fire(fire) for fire in found])


@router.post("/skill-files/scan", **document("Have the files of a skill scanned", 404, body=SkillScan))
async def scan_skill_files(hub: TheHub, request: Request) -> SkillScanResult:
    """Before it is installed. The guardian reads every text of the folder."""
    wanted = await read_body(request, SkillScan)
    await hub.base.lifecycle.wait_ready()
    content_hash, scanned = await scan_skill(wanted.folder, hub.base.home.skills, hub.toolbox.guard)
    found = [
        ScannedFile(file=file, risk=one.risk, threats=threat_kinds(one), unscanned=one.unscanned)
        for file, one in sorted(scanned.items())
        if one.risk != "none" or one.unscanned
    ]
    return SkillScanResult(hash=content_hash, texts=len(scanned), found=found)


async def _show(hub: HubContext, skill: StoredSkill) -> SkillView:
    last = await hub.storage.database.read(lambda conn: skills.list_fires(conn, skill.user_id, skill.id, limit=1))
    return _to_view(hub, skill, last[0] if last else None)


def _to_view(hub: HubContext, skill: StoredSkill, last: StoredFire | None) -> SkillView:
    service = hub.services.skills
    return SkillView.from_row(
        skill,
        skill_id=skill.id,
        when=service.describe(skill),
        order=service.order_of(skill).to_json(),
        missing_tools=service.unknown_tools(skill),
        has_webhook=skill.webhook_hash is not None,
        last_fire=None if last is None else _to_fire(last),
    )


def _to_fire(fire: StoredFire) -> FireView:
    result = None if fire.result is None else fire.result.get("text")
    return FireView.from_row(fire, fire_id=fire.id, result=result)


def _after_conversations(settings: Settings) -> list[AfterConversation]:
    minutes = {"Archive": settings.agent_session_timeout}
    if (learning := idle_seconds(settings)) is not None:
        minutes["Learn Facts"] = learning / 60
    return [
        AfterConversation(name=name, when=f"once a chat has been silent for {idle:g} minutes")
        for name, idle in minutes.items()
    ]
