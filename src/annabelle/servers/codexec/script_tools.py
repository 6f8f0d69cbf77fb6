"""Tools that save, show, find, delete and run scripts."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Annotated
from weakref import WeakValueDictionary

from pydantic import ConfigDict, Field

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.core.messages import now
from annabelle.core.result_text import for_model
from annabelle.servers.codexec.code_runner import CodeRunner
from annabelle.servers.codexec.execute import MAX_CODE_CHARS, LanguageArgument, Timeout, WorkingDir
from annabelle.servers.codexec.execution import RunReport
from annabelle.servers.codexec.languages import Language
from annabelle.servers.codexec.packages import PackageInstaller, check_package_name
from annabelle.servers.codexec.script_library import Script, ScriptLibrary, check_script_name, search_scripts
from annabelle.servers.kit import Result, in_thread, tool
from annabelle.servers.kit.files.atomic_write import make_stamp
from annabelle.servers.kit.files.paths import TRASH
from annabelle.servers.kit.overflow import ShownText
from annabelle.servers.kit.pagination import get_page


class ScriptLine(Result):
    """A script in a list."""

    model_config = ConfigDict(from_attributes=True)

    name: str
    description: str
    language: str
    tags: list[str] = Field(default=[])
    runs: int = 0


class ScriptList(Result):
    scripts: list[ScriptLine]
    total: int
    next_page: str | None = Field(default=None, description="Give it as page_token to get the following ones")
    damaged: list[str] = Field(default=[], description="Scripts whose file can not be read")


class ScriptText(ScriptLine):
    """A script with its code."""

    code: str
    rest: str | None = Field(default=None, description="File with the whole code, where it was too long to show")
    packages: list[str] = Field(default=[])
    created: str
    updated: str
    last_run: str | None = None
    last_exit_code: int | None = None

    @classmethod
    def from_script_and_code(cls, script: Script, code: ShownText) -> ScriptText:
        return cls(
            **script.model_dump(include=cls.model_fields.keys() - {"code", "created", "updated", "last_run"}),
            code=code.text,
            rest=code.rest,
            created=script.created.isoformat(timespec="seconds"),
            updated=script.updated.isoformat(timespec="seconds"),
            last_run=script.last_run.isoformat(timespec="seconds") if script.last_run else None,
        )


class ScriptSaved(Result):
    name: str
    outcome: str = Field(description="created, replaced or unchanged")
    backup: str | None = Field(default=None, description="Where the old version is kept for some days")

    def to_text(self) -> str:
        kept = f" The old version is kept as {self.backup}." if self.backup else ""
        return f"Script {self.name}: {self.outcome}.{kept}"


class ScriptDeleted(Result):
    name: str
    backup: str = Field(description="Where it is kept for some days; save_script with its fields brings it back")

    def to_text(self) -> str:
        undo = for_model("; save_script brings it back")
        return f"Script {self.name} is deleted. It is kept as {self.backup} for some days{undo}."


class ScriptReport(RunReport):
    """How a script went."""

    name: str = ""
    saved: str | None = Field(default=None, description="created, replaced or unchanged, when it was saved first")
    backup: str | None = Field(default=None, description="Where its old version is kept for some days")


_PAGE = 50
_READY = ".ready"
_SHOWN_CHARS = 100_000

Name = Annotated[str, Field(max_length=200, description="Name of the script")]
Description = Annotated[str, Field(max_length=2_000, description="What it does, for finding it again")]
ScriptCode = Annotated[str, Field(max_length=MAX_CODE_CHARS, description="The code; arguments come as argv")]
Tags = Annotated[
    list[Annotated[str, Field(max_length=50)]] | None, Field(max_length=20, description="Words to find it by")
]
Packages = Annotated[
    list[Annotated[str, Field(max_length=300)]] | None,
    Field(max_length=30, description="Packages it needs (requests==2.32.0, lodash@4.17); installed at its first run"),
]
Args = Annotated[
    list[Annotated[str, Field(max_length=10_000)]] | None,
    Field(max_length=100, description="Arguments for the script, each handed over as it is"),
]
PageToken = Annotated[str | None, Field(max_length=100, description="next_page of the previous answer")]


class ScriptTools:
    def __init__(self, runner: CodeRunner, library: ScriptLibrary, installer: PackageInstaller) -> None:
        self._runner = runner
        self._library = library
        self._installer = installer
        self._fetching: WeakValueDictionary[Path, asyncio.Lock] = WeakValueDictionary()
        self._writing = asyncio.Lock()  # concurrent changes must not lose each other's backup

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def save_script(
        self,
        name: Name,
        description: Description,
        language: LanguageArgument,
        code: ScriptCode,
        tags: Tags = None,
        packages: Packages = None,
    ) -> ScriptSaved:
        """Keep code under a name to run it again with run_script. A script of the same name is replaced; its old
        version is kept for some days."""
        wanted = check_script_name(name)
        script = Script(
            name=wanted,
            description=description,
            language=language,
            code=code,
            tags=sorted({tag.strip() for tag in tags or [] if tag.strip()}),
            packages=_check_packages(language, packages or []),
            created=now(),
            updated=now(),
        )
        async with self._writing:
            return await self._save(script)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_script(self, name: Name) -> ScriptText:
        """Show a script with its code."""
        wanted = check_script_name(name)
        script = await in_thread(lambda stop: self._library.get(wanted))
        shown = await self._runner.overflow.show_text(script.code, _SHOWN_CHARS, f"{wanted}.txt")
        return ScriptText.from_script_and_code(script, shown)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_scripts(
        self,
        language: Annotated[Language | None, Field(description="Only scripts in this language")] = None,
        tag: Annotated[str | None, Field(max_length=50, description="Only scripts with this tag")] = None,
        page_token: PageToken = None,
    ) -> ScriptList:
        """List the scripts that are kept, by name."""
        shelf = await in_thread(lambda stop: self._library.load_all())
        wanted = tag.casefold() if tag is not None else None
        chosen = [
            ScriptLine.model_validate(script)
            for script in shelf.scripts
            if language in (None, script.language)
            and (wanted is None or wanted in [own.casefold() for own in script.tags])
        ]
        page = get_page(chosen, page_token, _PAGE)
        return ScriptList(
            scripts=page.items, total=len(chosen), next_page=page.next_page, damaged=list(shelf.damaged[:_PAGE])
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def search_scripts(
        self,
        query: Annotated[str, Field(min_length=1, max_length=500, description="Words to look for")],
        page_token: PageToken = None,
    ) -> ScriptList:
        """Find scripts by words in their name, tags, description or code; the best match comes first."""
        shelf = await in_thread(lambda stop: self._library.load_all())
        chosen = [ScriptLine.model_validate(script) for script in search_scripts(shelf.scripts, query)]
        page = get_page(chosen, page_token, _PAGE)
        return ScriptList(scripts=page.items, total=len(chosen), next_page=page.next_page)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_script(self, name: Name) -> ScriptDeleted:
        """Delete a script. It is kept in the workspace's temp folder for some days."""
        wanted = check_script_name(name)
        async with self._writing:
            held = await in_thread(lambda stop: self._library.read_bytes(wanted))
            if held is None:
                raise NotFound(f"There is no script called {wanted!r}.", hint="list_scripts shows all.", field="name")
            backup = await self._keep_backup(wanted, held)
            await in_thread(lambda stop: self._library.remove(wanted))
            await in_thread(lambda stop: self._runner.folders.forget_script(wanted))
        return ScriptDeleted(name=wanted, backup=backup)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def run_script(
        self, name: Name, args: Args = None, timeout_ms: Timeout = None, working_dir: WorkingDir = None
    ) -> ScriptReport:
        """Run a script of the library in the sandbox, with arguments."""
        return await self._run(check_script_name(name), args or [], timeout_ms, working_dir)

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
        checked, _ = _check_args(args or []), self._runner.resolve_timeout(timeout_ms)
        saved = await self.save_script(name, description, language, code, tags, packages)
        report = await self._run(saved.name, checked, timeout_ms, working_dir)
        return report.model_copy(update={"saved": saved.outcome, "backup": saved.backup})

    async def _save(self, script: Script) -> ScriptSaved:
        file = await in_thread(lambda stop: self._library.read_bytes(script.name))
        if file is None:
            await in_thread(lambda stop: self._library.save(script))
            return ScriptSaved(name=script.name, outcome="created")
        old = await in_thread(lambda stop: self._library.get_or_none(script.name))
        if old is not None and old.same_content(script):
            return ScriptSaved(name=old.name, outcome="unchanged")
        backup = await self._keep_backup(script.name, file)
        history = {} if old is None else {"created": old.created, "runs": old.runs, "last_run": old.last_run}
        await in_thread(lambda stop: self._library.save(script.model_copy(update=history)))
        return ScriptSaved(name=script.name, outcome="replaced", backup=backup)

    async def _keep_backup(self, name: str, held: bytes) -> str:
        return (await self._runner.workspace.keep(f"{TRASH}/{make_stamp()}", f"{name}.json", held)).path

    async def _run(self, name: str, args: list[str], timeout_ms: int | None, working_dir: str | None) -> ScriptReport:
        seconds, checked = self._runner.resolve_timeout(timeout_ms), _check_args(args)
        script = await in_thread(lambda stop: self._library.get(name))
        packages = await self._ensure_packages(script)
        async with self._runner.work_folder(working_dir) as work_folder:
            report = await self._runner.run_code(
                script.language, script.code, work_folder, seconds, args=checked, packages=packages
            )
        await in_thread(lambda stop: self._library.update(name, lambda old: _count_run(old, report.exit_code)))
        return ScriptReport(**report.model_dump(), name=script.name)

    async def _ensure_packages(self, script: Script) -> Path | None:
        """Install the script's own packages before its first run. An interrupted install is started again."""
        if not script.packages or script.language == "bash":
            return None
        language = script.language
        folders, wanted = self._runner.folders, (script.name, language, script.packages)
        folder = await in_thread(lambda stop: folders.script_packages(*wanted))
        lock = self._fetching.setdefault(folder, asyncio.Lock())
        async with lock:  # of two first runs at once, the second waits for the first
            if not await in_thread(lambda stop: (folder / _READY).exists()):
                await in_thread(lambda stop: folders.forget_script(script.name, but=folder))
                await in_thread(lambda stop: shutil.rmtree(folder / language, ignore_errors=True))
                await in_thread(lambda stop: folders.script_packages(*wanted))
                await self._installer.install(language, script.packages, folder)
                await in_thread(lambda stop: (folder / _READY).write_bytes(b""))
        return folder


def _check_packages(language: Language, packages: list[str]) -> list[str]:
    if language == "bash":
        if packages:
            raise InvalidArguments("A bash script can have no packages.", field="packages")
        return []
    return sorted({check_package_name(language, package, field="packages") for package in packages})


def _check_args(args: list[str]) -> list[str]:
    if any("\x00" in arg for arg in args):
        raise InvalidArguments("An argument has a null byte in it.", field="args")
    return args


def _count_run(script: Script, exit_code: int | None) -> Script:
    return script.model_copy(update={"runs": script.runs + 1, "last_run": now(), "last_exit_code": exit_code})
