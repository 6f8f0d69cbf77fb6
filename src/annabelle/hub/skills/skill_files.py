"""The hub's part in SKILL.md files: watches the folder, lets agents read skills, and has new ones scanned (SKL-06)."""

from __future__ import annotations

import asyncio
import importlib
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Final, cast

from annabelle.core.background import BackgroundTasks
from annabelle.core.errors import InvalidArguments, NotFound, RetryByModel
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.core.trust import ScanOutcome
from annabelle.hub.notices import Notices
from annabelle.hub.skills.skill_seeder import SkillSeeder
from annabelle.skills.skill_file import SkillFile, SkillMistake, list_files, read_text
from annabelle.skills.skill_folder import SkillFolder, hash_skill
from annabelle.toolbox.catalogue import READS, NativeTool, native_tool, text_parameter
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.guard import ContentGuard, ScanSubject

_log = logging.getLogger(__name__)
LOOK_MS: Final = 300_000
_FOLDER_SECONDS: Final = 10.0
_QUIET_MS: Final = 400
_MOST_NAMED: Final = 50
_TOPIC: Final = "skill_file"

_Watch = Callable[..., AsyncGenerator[set[object]]]


class SkillFiles:
    """Looks at the start, after each change and every five minutes. The tool exists once there is a skill to read."""

    def __init__(self, *, folder: SkillFolder, toolbox: Toolbox, notices: Notices, offered: SkillSeeder) -> None:
        self._folder, self._toolbox, self._notices, self._offers = folder, toolbox, notices, offered
        # Lookups run in threads, and the folder is not made for several at once.
        self._lock = asyncio.Lock()
        self._tasks = BackgroundTasks()
        self._reported: dict[str, str] = {}
        self._offered = False

    async def start(self) -> None:
        await self.look()
        self._tasks.start(self._watch())

    async def stop(self) -> None:
        await self._tasks.stop()

    async def look(self) -> list[SkillFile]:
        """All skills in use now. Refused ones become notices until they are mended or gone."""
        async with self._lock:
            skills, refused = await asyncio.to_thread(lambda: (self._folder.skills(), self._folder.refused()))
        reasons = {one.folder.name: f"The skill {one.folder.name} is not used: {one.reason}." for one in refused}
        for name in self._reported.keys() - reasons.keys():
            self._notices.clear(f"{_TOPIC}:{name}")
        for name, reason in reasons.items():
            if self._reported.get(name) != reason:
                self._notices.add(f"{_TOPIC}:{name}", reason, level="warning")
        self._reported = reasons
        if skills and not self._offered:
            self._offered = True
            self._toolbox.add_native([self._read_skill_tool()])
        await self._offers.sync_files(skills)
        return skills

    async def _watch(self) -> None:
        # Imported here, in a thread, so that the start does not wait for it.
        awatch = cast("_Watch", (await asyncio.to_thread(importlib.import_module, "watchfiles")).awatch)
        folder = self._folder.folder
        while True:
            await self.look()
            try:
                if folder.is_dir():
                    await self._follow(awatch(folder, step=_QUIET_MS, yield_on_timeout=True, rust_timeout=LOOK_MS))
            except (OSError, RuntimeError) as error:  # the folder went away, or the system ran out of watches
                _log.warning("%s can not be watched: %s", folder, error)
            await asyncio.sleep(_FOLDER_SECONDS)

    async def _follow(self, changes: AsyncGenerator[set[object]]) -> None:
        """Look after each change and each timeout, as long as the folder is there."""
        async with aclosing(changes):
            async for _ in changes:
                await self.look()
                if not self._folder.folder.is_dir():
                    return

    def _read_skill_tool(self) -> NativeTool:
        return native_tool(
            "read_skill",
            "Read the instructions of a skill in <available_skills>, or one of its files. A script among them is run "
            "with the tools that execute code.",
            {
                "name": text_parameter(64, "The name of the skill"),
                "file": text_parameter(400, "A file of it, as its instructions name it"),
            },
            required=("name",),
            annotations=READS,
            group="Skills",
        )(self._read_skill)

    async def _read_skill(self, arguments: JsonObject, _context: CallContext) -> ToolResult:
        name, file = str(arguments["name"]), arguments.get("file")

        def read() -> str:
            text = self._folder.read(name, None if file is None else str(file))
            others = self._folder.resources(self._folder.find(name)) if file is None else []
            listed = "\n".join(f"- {path}" for path in others[:_MOST_NAMED])
            return f"{text}\n\nFiles of this skill:\n{listed}" if listed else text

        async with self._lock:
            try:
                text = await asyncio.to_thread(read)
            except SkillMistake as mistake:
                names = ", ".join(skill.name for skill in self._folder.skills()[:_MOST_NAMED])
                raise RetryByModel(f"{mistake}.", hint=f"There are: {names}." if names else None) from mistake
        # Somebody else's words: they taint the turn like a page or a mail.
        return ToolResult(text=text, trust="untrusted")


async def scan_skill(name: str, root: Path, guard: ContentGuard) -> tuple[str, dict[str, ScanOutcome]]:
    """Has every text of a folder below `root` scanned; returns the hash of its files and the verdict for each."""
    try:
        content_hash, texts = await asyncio.to_thread(_read_all, root / name, root)
    except SkillMistake as mistake:
        raise InvalidArguments(f"The skill can not be scanned: {mistake}.") from mistake
    rules = guard.rules(None)
    if not rules.enabled:
        return content_hash, dict.fromkeys(texts, ScanOutcome(unscanned=True))
    found = await asyncio.gather(
        *(guard.scan(text, ScanSubject("output", "skills", path), rules) for path, text in texts.items())
    )
    return content_hash, dict(zip(texts, found, strict=True))


def _read_all(folder: Path, root: Path) -> tuple[str, dict[str, str]]:
    if not folder.is_dir() or not folder.resolve().is_relative_to(root.resolve()) or ".." in folder.parts:
        raise NotFound(f"There is no folder {folder.name} among the skills.")
    texts: dict[str, str] = {}
    for path in list_files(folder):
        try:
            texts[path.relative_to(folder).as_posix()] = read_text(path, folder, folder.parent)
        except SkillMistake as mistake:
            if mistake.kind != "not UTF-8":  # an image or a font has no words
                raise
    return hash_skill(folder), texts
