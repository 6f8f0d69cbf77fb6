"""The tools that run scripts."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Annotated
from weakref import WeakValueDictionary

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.core.messages import now
from annabelle.servers.codexec.executing import LanguageArgument, Timeout, WorkingDir
from annabelle.servers.codexec.packages.installer import Installer
from annabelle.servers.codexec.scripts.keeping import Description, Keeping, Name, Packages, ScriptCode, Tags
from annabelle.servers.codexec.scripts.library import Library
from annabelle.servers.codexec.scripts.results import ScriptReport
from annabelle.servers.codexec.scripts.script import Script, script_name
from annabelle.servers.codexec.workshop import Workshop
from annabelle.servers.kit import in_thread, tool

Args = Annotated[
    list[Annotated[str, Field(max_length=10_000)]] | None,
    Field(max_length=100, description="Arguments for the script, each handed over as it is"),
]
_READY = ".ready"


class RunningScripts:
    """run_script and save_and_run_script."""

    def __init__(self, workshop: Workshop, library: Library, keeping: Keeping, installer: Installer) -> None:
        self._workshop = workshop
        self._library = library
        self._keeping = keeping
        self._installer = installer
        self._fetching: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def run_script(
        self, name: Name, args: Args = None, timeout_ms: Timeout = None, working_dir: WorkingDir = None
    ) -> ScriptReport:
        """Run a script of the library in the sandbox, with arguments."""
        return await self._run(script_name(name), args or [], timeout_ms, working_dir)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def save_and_run_script(
        self,
        name: Name,
        description: Description,
        language: LanguageArgument,
        code: ScriptCode,
        tags: Tags = None,
        packages: Packages = None,
        args: Args = None,
        timeout_ms: Timeout = None,
        working_dir: WorkingDir = None,
    ) -> ScriptReport:
        """Keep code in the library under a name, and run it at once. It stays there also when the run fails."""
        checked, _ = _args(args or []), self._workshop.seconds(timeout_ms)
        saved = await self._keeping.save(name, description, language, code, tags, packages)
        report = await self._run(saved.name, checked, timeout_ms, working_dir)
        return report.model_copy(update={"saved": saved.outcome, "backup": saved.backup})

    async def _run(self, name: str, args: list[str], timeout_ms: int | None, working_dir: str | None) -> ScriptReport:
        seconds, checked = self._workshop.seconds(timeout_ms), _args(args)
        script = await in_thread(lambda stop: self._library.get(name))
        packages = await self._packages(script)
        async with self._workshop.bench(working_dir) as bench:
            report = await self._workshop.run_code(
                script.language, script.code, bench, seconds, args=checked, packages=packages
            )
        await in_thread(lambda stop: self._library.change(name, lambda old: _counted(old, report.exit_code)))
        return ScriptReport(**report.model_dump(), name=script.name)

    async def _packages(self, script: Script) -> Path | None:
        """The script's own packages, fetched before its first run; a fetch that was broken off is begun again."""
        if not script.packages or script.language == "bash":
            return None
        language = script.language
        folders, wanted = self._workshop.folders, (script.name, language, script.packages)
        folder = await in_thread(lambda stop: folders.of_script(*wanted))
        lock = self._fetching.setdefault(folder, asyncio.Lock())
        async with lock:  # two first runs at once: the second waits for what the first one fetches
            if not await in_thread(lambda stop: (folder / _READY).exists()):
                await in_thread(lambda stop: folders.forget_script(script.name, but=folder))
                await in_thread(lambda stop: shutil.rmtree(folder / language, ignore_errors=True))
                await in_thread(lambda stop: folders.of_script(*wanted))
                await self._installer.install(language, script.packages, folder)
                await in_thread(lambda stop: (folder / _READY).write_bytes(b""))
        return folder


def _args(args: list[str]) -> list[str]:
    if any("\x00" in arg for arg in args):
        raise InvalidArguments("An argument has a null byte in it.", field="args")
    return args


def _counted(script: Script, exit_code: int | None) -> Script:
    return script.model_copy(update={"runs": script.runs + 1, "last_run": now(), "last_exit_code": exit_code})
