"""`/skills`: what runs by itself, and what came of it."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import Path, Query, Request
from pydantic import ConfigDict, Field

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Risk
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.skills.skill_files import scan_skill
from annabelle.store.skills import FireState, StoredFire, StoredSkill
from annabelle.toolbox.guard import threat_kinds

router = ApiRouter("skills")
SkillName = Annotated[str, Path(max_length=200, examples=["stretch"], description="Its number or its name")]


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
    failures: int = Field(description="In a row")
    missed: str = Field(description="What happens to a fire that was missed: run, skip or list")
    thread_id: str
    created_at: datetime


class SkillList(ApiAnswer):
    skills: list[SkillView]


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


class FireList(ApiAnswer):
    fires: list[FireView]


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


class SkillSwitch(ApiBody):
    """Whether it runs when it is due."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"enabled": False}]})

    enabled: bool


@router.get("/skills", **document("What runs by itself"))
async def list_skills(hub: TheHub, caller: Caller) -> SkillList:
    """Your own skills, the next due first."""
    found = await hub.services.skills.list(caller.user_id)
    return SkillList(skills=[_to_view(hub, skill) for skill in found])


@router.get("/skills/{named}", **document("One skill", 404))
async def get_skill(named: SkillName, hub: TheHub, caller: Caller) -> SkillView:
    return _to_view(hub, await hub.services.skills.get(named, caller.user_id))


@router.post("/skills/{named}/switch", **document("Switch a skill on or off", 404, body=SkillSwitch))
async def switch_skill(named: SkillName, hub: TheHub, caller: Caller, request: Request) -> SkillView:
    """A skill that is off keeps its schedule and does nothing."""
    wanted = await read_body(request, SkillSwitch)
    changed = await hub.services.skills.update(named, {"enabled": wanted.enabled}, caller.user_id)
    return _to_view(hub, changed)


@router.post("/skills/{named}/run", **document("Run a skill now", 404))
async def run_skill(named: SkillName, hub: TheHub, caller: Caller) -> FireView:
    """Once, beside its schedule."""
    return _to_fire(await hub.services.skills.run_now(named, caller.user_id))


@router.post("/skills/{named}/delete", **document("Delete a skill", 404))
async def delete_skill(named: SkillName, hub: TheHub, caller: Caller) -> SkillView:
    """For good. What it did stays in the history."""
    return _to_view(hub, await hub.services.skills.delete(named, caller.user_id))


@router.get("/fires", **document("What came of skills", 404))
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


def _to_view(hub: HubContext, skill: StoredSkill) -> SkillView:
    return SkillView.from_row(skill, skill_id=skill.id, when=hub.services.skills.describe(skill))


def _to_fire(fire: StoredFire) -> FireView:
    result = None if fire.result is None else fire.result.get("text")
    return FireView.from_row(fire, fire_id=fire.id, result=result)
