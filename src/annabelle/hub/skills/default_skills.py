"""Offers the skills that come with Annabelle: off until the person says yes, and never again once deleted (SKL-07)."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection
from importlib.resources import files
from pathlib import Path
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.core.contract import TERMINAL
from annabelle.core.home import write_atomically
from annabelle.core.messages import OWNER
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.hub.skills.skill_service import SkillOwner, SkillService
from annabelle.store import threads

MANIFEST: Final = "defaults.json"
"""Beside the skill files of a home."""


def load_default_skills() -> list[JsonObject]:
    text = files("annabelle.skills").joinpath("default_skills.toml").read_text(encoding="utf-8")
    listed = cast("list[JsonObject]", tomllib.loads(text)["skills"])
    return [{**one, "trigger_config": one["schedule"]} for one in listed]


async def seed_default_skills(service: SkillService, folder: Path, settings: Settings, agent_id: str) -> list[str]:
    """Add those the home has not been offered yet; returns their names."""
    offered = read_offered(folder)
    new = [one for one in load_default_skills() if one["name"] not in offered]
    if not new:
        return []
    thread_id = await service.database.write(lambda conn: find_chat(conn, settings, agent_id))
    owner = SkillOwner(OWNER, agent_id, thread_id)
    known = {skill.name for skill in await service.list(OWNER)}
    for one in new:
        if one["name"] not in known:
            given = {name: value for name, value in one.items() if name != "schedule"}
            enabled = one.get("enabled") is True
            await service.add({"if_missed": "skip", **given, "enabled": enabled}, owner, confirmed=enabled, system=True)
    names = [str(one["name"]) for one in new]
    write_offered(folder, {*offered, *names})
    return names


def find_chat(conn: Connection, settings: Settings, agent_id: str) -> str:
    """Where they report until the person has a chat: the one for notices, or the terminal's."""
    channel, chat_id = settings.notify_channel or TERMINAL, settings.notify_chat_id or TERMINAL
    return threads.find_or_create_thread(conn, channel=channel, chat_id=chat_id, user_id=OWNER, agent_id=agent_id).id


def write_offered(folder: Path, names: Collection[str]) -> None:
    write_atomically(folder / MANIFEST, json.dumps(sorted(names), indent=2) + "\n")


def read_offered(folder: Path) -> list[str]:
    """The names of skills that were offered once, so that what the person deleted stays deleted."""
    try:
        kept: object = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return []
    return [str(name) for name in cast("list[object]", kept)] if isinstance(kept, list) else []
