"""Keeps skills at their time of day when the person's time zone is changed (SKL-01)."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path

from sqlalchemy import Connection

from annabelle.core.errors import InvalidArguments
from annabelle.core.home import write_atomically
from annabelle.core.tools import JsonObject
from annabelle.hub.skills.skill_service import SkillService
from annabelle.skills.schedule import read_schedule
from annabelle.store import skills

_log = logging.getLogger(__name__)


async def follow_time_zone(service: SkillService, file: Path, wanted: str) -> None:
    """Move the schedules that are in the person's zone of the last start, which is in `file`, to that of now.

    `wanted` is what the settings name. If there is no such zone, nothing is moved.
    """
    zone = service.time_zone.key
    if wanted != zone:
        return
    try:
        before = await asyncio.to_thread(_read, file)
        if before == zone:
            return
        if before is not None:
            await service.database.write(lambda conn: _move(conn, service, before))
        await asyncio.to_thread(write_atomically, file, f"{zone}\n")
    except OSError as error:
        _log.warning("The time zone could not be kept in %s: %s", file, error.strerror)


def _move(conn: Connection, service: SkillService, before: str) -> None:
    at = service.clock.now()
    for skill in skills.list_timed_skills(conn):
        if skill.trigger.get("timezone") != before:
            continue
        trigger = skill.trigger | {"timezone": service.time_zone.key}
        changes: JsonObject = {"trigger": trigger}
        try:
            schedule = read_schedule(trigger)
            # One that was due while nothing ran is still made up for, or told as missed.
            if schedule is not None and skill.next_due is not None and skill.next_due > at:
                changes["next_due"] = schedule.next_after(at)
        except (InvalidArguments, ValueError):
            continue  # it is switched off with the reason when it is due
        skills.change_skill(conn, skill.id, changes)


def _read(file: Path) -> str | None:
    try:
        return file.read_text(encoding="utf-8", errors="replace").strip() or None
    except FileNotFoundError:
        return None
