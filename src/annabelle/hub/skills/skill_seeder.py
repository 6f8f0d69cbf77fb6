"""Skills that are offered and not made: those that come with Annabelle, and SKILL.md files that say when they run.

Each is off until the person says yes, and is never offered again once it was deleted (SKL-06, SKL-07). What a run of a
file's skill is ordered to do is to carry the skill out; the text of the file is somebody else's, and read as such.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tomllib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.resources import files as packaged_files
from pathlib import Path
from typing import Final, cast

from sqlalchemy import Connection

from annabelle.core.contract import TERMINAL, TERMINAL_CHAT
from annabelle.core.errors import AnnabelleError
from annabelle.core.home import write_atomically
from annabelle.core.messages import OWNER
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.hub.skills.skill_service import SkillOwner, SkillService
from annabelle.skills.skill_file import SkillFile
from annabelle.store import threads

_log = logging.getLogger(__name__)
MANIFEST: Final = "offered.json"
"""Beside the skill files of a home: what it has been offered."""
_FILE: Final = "file:"
_FROM: Final = "From the file of the skill {name}."
_GONE: Final = "Its file is gone or was changed."
_INSTRUCTIONS: Final = "Carry out the skill “{name}”: {description} Read it with read_skill first."


def load_default_skills() -> list[JsonObject]:
    text = packaged_files("annabelle.skills").joinpath("default_skills.toml").read_text(encoding="utf-8")
    return cast("list[JsonObject]", tomllib.loads(text)["skills"])


@dataclass(frozen=True, slots=True)
class SkillSeeder:
    service: SkillService
    folder: Path
    settings: Settings
    agent_id: str

    async def start(self) -> None:
        try:
            await self.seed_defaults()
        except (AnnabelleError, OSError) as error:  # they are offered at the next start
            _log.warning("The default skills could not be offered: %s", error)

    async def seed_defaults(self) -> list[str]:
        """Offer the default skills that the home has not been offered yet; returns their names."""
        offered = await asyncio.to_thread(self._read)
        new = [one for one in load_default_skills() if one["name"] not in offered]
        known = {skill.name for skill in await self.service.list(OWNER)}
        for one in new:
            if one["name"] not in known:
                await self._add({"if_missed": "skip", "enabled": False, **one}, confirmed=one.get("enabled") is True)
        names = [str(one["name"]) for one in new]
        if names:
            await asyncio.to_thread(self._write, {*offered, *names})
        return names

    async def sync_files(self, files: Sequence[SkillFile]) -> None:
        """Offer files that are new, and switch off what is gone until it is back. What the person changed stays."""
        wanted = {file.name: file for file in files if file.trigger_config}
        known = {one.name: one for one in await self.service.list(OWNER)}
        offered = await asyncio.to_thread(self._read)
        for name, file in wanted.items():
            try:
                if name not in known and f"{_FILE}{name}" not in offered:
                    await self._add(_describe_file(file), confirmed=False)
                elif name in known and known[name].disabled_why == _GONE:
                    await self.service.restore(known[name].id, OWNER)
            except AnnabelleError as error:
                _log.warning("The schedule of the skill %s is not used: %s", name, error.message)
        for name, skill in known.items():
            if name not in wanted and skill.enabled and skill.description == _FROM.format(name=name):
                await self.service.suspend(skill.id, OWNER, _GONE)
        # A file that is gone may be offered again when it is back.
        now = {one for one in offered if not one.startswith(_FILE)} | {f"{_FILE}{name}" for name in wanted}
        if now != offered:
            await asyncio.to_thread(self._write, now)

    async def _add(self, given: JsonObject, *, confirmed: bool) -> None:
        thread_id = await self.service.database.write(self._find_chat)
        owner = SkillOwner(OWNER, self.agent_id, thread_id)
        await self.service.add(given, owner, confirmed=confirmed, system=confirmed)

    def _find_chat(self, conn: Connection) -> str:
        """Where they report until the person has a chat: the one for notices, or the terminal's."""
        channel, chat_id = self.settings.notify_channel or TERMINAL, self.settings.notify_chat_id or TERMINAL_CHAT
        return threads.find_or_create_thread(
            conn, channel=channel, chat_id=chat_id, user_id=OWNER, agent_id=self.agent_id
        ).id

    def _read(self) -> set[str]:
        try:
            kept: object = json.loads((self.folder / MANIFEST).read_bytes())
        except (OSError, ValueError):
            return set()
        return {str(name) for name in cast("list[object]", kept)} if isinstance(kept, list) else set()

    def _write(self, names: Collection[str]) -> None:
        write_atomically(self.folder / MANIFEST, json.dumps(sorted(names), indent=2) + "\n")


def _describe_file(file: SkillFile) -> JsonObject:
    plan: JsonObject = {"execution_plan": list(file.execution_plan)} if len(file.execution_plan) == 1 else {}
    return {
        "name": file.name,
        "description": _FROM.format(name=file.name),
        "instructions": _INSTRUCTIONS.format(name=file.name, description=file.description),
        "trigger_config": file.trigger_config,
        "required_tools": ["read_skill", *file.tools],
        "max_steps": file.max_steps,
        "enabled": False,
        **plan,
    }
