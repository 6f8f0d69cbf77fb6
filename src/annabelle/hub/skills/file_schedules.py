"""Offers SKILL.md files that say when they run as skills: off until the person says yes, and once the file is gone.

What a run is ordered to do is to carry the skill out. The text of the file is somebody else's, and read as such.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from annabelle.core.errors import AnnabelleError
from annabelle.core.messages import OWNER
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.hub.skills.default_skills import find_chat, read_offered, write_offered
from annabelle.hub.skills.skill_service import SkillOwner, SkillService
from annabelle.skills.skill_file import SkillFile
from annabelle.store.skills import StoredSkill

_log = logging.getLogger(__name__)
_FROM: Final = "From the file of the skill {name}."
_MARK: Final = "file:"
_GONE: Final = "Its file is gone or was changed."
_INSTRUCTIONS: Final = "Carry out the skill “{name}”: {description} Read it with read_skill first."


class FileSchedules:
    def __init__(self, service: SkillService, folder: Path, settings: Settings, agent_id: str) -> None:
        self._service, self._folder, self._settings, self._agent_id = service, folder, settings, agent_id

    async def sync(self, files: Sequence[SkillFile]) -> None:
        """Add what is new, and switch off what is gone until it is back. What the person changed stays."""
        wanted = {file.name: file for file in files if file.trigger_config}
        known = {one.name: one for one in await self._service.list(OWNER)}
        offered = set(await asyncio.to_thread(read_offered, self._folder))
        for name, file in wanted.items():
            try:
                if name not in known and _mark(name) not in offered:
                    await self._add(file)
                elif name in known and known[name].disabled_why == _GONE:
                    await self._service.restore(known[name].id, OWNER)
            except AnnabelleError as error:
                _log.warning("The schedule of the skill %s is not used: %s", name, error.message)
        for name, skill in known.items():
            if name not in wanted and skill.enabled and skill.description == _FROM.format(name=name):
                await self._service.suspend(skill.id, OWNER, _GONE)
        # A file that is gone may be offered again when it is back.
        now = {one for one in offered if not one.startswith(_MARK)} | set(map(_mark, wanted))
        if now != offered:
            await asyncio.to_thread(write_offered, self._folder, now)

    async def _add(self, file: SkillFile) -> StoredSkill:
        thread_id = await self._service.database.write(lambda conn: find_chat(conn, self._settings, self._agent_id))
        given: JsonObject = {
            "name": file.name,
            "description": _FROM.format(name=file.name),
            "instructions": _INSTRUCTIONS.format(name=file.name, description=file.description),
            "trigger_config": file.trigger_config,
            "required_tools": ["read_skill", *file.tools],
            "max_steps": file.max_steps,
            "enabled": False,
        }
        if len(file.execution_plan) == 1:
            given["execution_plan"] = cast("object", list(file.execution_plan))
        return await self._service.add(given, SkillOwner(OWNER, self._agent_id, thread_id), confirmed=False)


def _mark(name: str) -> str:
    return f"{_MARK}{name}"
