"""The tools that keep, show and remove scripts."""

from __future__ import annotations

import asyncio
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.core.messages import now
from annabelle.servers.codexec.executing import MAX_CODE_CHARS, LanguageArgument
from annabelle.servers.codexec.packages.names import checked
from annabelle.servers.codexec.programs import Language
from annabelle.servers.codexec.scripts.library import Library
from annabelle.servers.codexec.scripts.results import ScriptDeleted, ScriptLine, ScriptList, ScriptSaved, ScriptText
from annabelle.servers.codexec.scripts.script import Script, script_name
from annabelle.servers.codexec.scripts.searching import found
from annabelle.servers.codexec.workshop import Workshop
from annabelle.servers.kit import in_thread, tool
from annabelle.servers.kit.files.layout import TRASH
from annabelle.servers.kit.files.parts import stamp
from annabelle.servers.kit.paging import page_of

_PAGE = 50
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
PageToken = Annotated[str | None, Field(max_length=100, description="next_page of the previous answer")]


class Keeping:
    """save_script, get_script, list_scripts, search_scripts and delete_script."""

    def __init__(self, workshop: Workshop, library: Library) -> None:
        self._workshop = workshop
        self._library = library
        self._writing = asyncio.Lock()  # of two changes at once the second keeps what the first has made

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
        return await self.save(name, description, language, code, tags, packages)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_script(self, name: Name) -> ScriptText:
        """Show a script with its code."""
        wanted = script_name(name)
        script = await in_thread(lambda stop: self._library.get(wanted))
        shown = await self._workshop.overflow.show(script.code, _SHOWN_CHARS, f"{wanted}.txt")
        return ScriptText.showing(script, shown)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_scripts(
        self,
        language: Annotated[Language | None, Field(description="Only scripts in this language")] = None,
        tag: Annotated[str | None, Field(max_length=50, description="Only scripts with this tag")] = None,
        page_token: PageToken = None,
    ) -> ScriptList:
        """List the scripts that are kept, by name."""
        shelf = await in_thread(lambda stop: self._library.all())
        wanted = tag.casefold() if tag is not None else None
        chosen = [
            ScriptLine.of(script)
            for script in shelf.scripts
            if language in (None, script.language)
            and (wanted is None or wanted in [own.casefold() for own in script.tags])
        ]
        page = page_of(chosen, page_token, _PAGE)
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
        shelf = await in_thread(lambda stop: self._library.all())
        chosen = [ScriptLine.of(script) for script in found(shelf.scripts, query)]
        page = page_of(chosen, page_token, _PAGE)
        return ScriptList(scripts=page.items, total=len(chosen), next_page=page.next_page)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=False)
    async def delete_script(self, name: Name) -> ScriptDeleted:
        """Delete a script. It is kept in the workspace's temp folder for some days."""
        wanted = script_name(name)
        async with self._writing:
            held = await in_thread(lambda stop: self._library.raw(wanted))
            if held is None:
                raise NotFound(f"There is no script called {wanted!r}.", hint="list_scripts shows all.", field="name")
            backup = await self._kept(wanted, held)
            await in_thread(lambda stop: self._library.remove(wanted))
            await in_thread(lambda stop: self._workshop.folders.forget_script(wanted))
        return ScriptDeleted(name=wanted, backup=backup)

    async def save(
        self,
        name: str,
        description: str,
        language: Language,
        code: str,
        tags: list[str] | None,
        packages: list[str] | None,
    ) -> ScriptSaved:
        wanted = script_name(name)
        script = Script(
            name=wanted,
            description=description,
            language=language,
            code=code,
            tags=sorted({tag.strip() for tag in tags or [] if tag.strip()}),
            packages=_packages(language, packages or []),
            created=now(),
            updated=now(),
        )
        async with self._writing:
            return await self._save(script)

    async def _save(self, script: Script) -> ScriptSaved:
        file = await in_thread(lambda stop: self._library.raw(script.name))
        if file is None:
            await in_thread(lambda stop: self._library.put(script))
            return ScriptSaved(name=script.name, outcome="created")
        old = await in_thread(lambda stop: self._library.whole(script.name))
        if old is not None and old.same_content(script):
            return ScriptSaved(name=old.name, outcome="unchanged")
        backup = await self._kept(script.name, file)
        history = {} if old is None else {"created": old.created, "runs": old.runs, "last_run": old.last_run}
        await in_thread(lambda stop: self._library.put(script.model_copy(update=history)))
        return ScriptSaved(name=script.name, outcome="replaced", backup=backup)

    async def _kept(self, name: str, held: bytes) -> str:
        return (await self._workshop.workspace.keep(f"{TRASH}/{stamp()}", f"{name}.json", held)).path


def _packages(language: Language, packages: list[str]) -> list[str]:
    if language == "bash":
        if packages:
            raise InvalidArguments("A bash script can have no packages.", field="packages")
        return []
    return sorted({checked(language, package, field="packages") for package in packages})
