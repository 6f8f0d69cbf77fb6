"""What the tools of the library give back."""

from __future__ import annotations

from pydantic import Field

from annabelle.servers.codexec.report import RunReport
from annabelle.servers.codexec.scripts.script import Script
from annabelle.servers.kit import Result
from annabelle.servers.kit.overflow import Shown


class ScriptLine(Result):
    """A script in a list."""

    name: str
    description: str
    language: str
    tags: list[str] = Field(default=[])
    runs: int = 0

    @classmethod
    def of(cls, script: Script) -> ScriptLine:
        return cls(
            name=script.name,
            description=script.description,
            language=script.language,
            tags=script.tags,
            runs=script.runs,
        )


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
    def showing(cls, script: Script, code: Shown) -> ScriptText:
        return cls(
            **ScriptLine.of(script).model_dump(),
            code=code.text,
            rest=code.rest,
            packages=script.packages,
            created=script.created.isoformat(timespec="seconds"),
            updated=script.updated.isoformat(timespec="seconds"),
            last_run=script.last_run.isoformat(timespec="seconds") if script.last_run else None,
            last_exit_code=script.last_exit_code,
        )


class ScriptSaved(Result):
    name: str
    outcome: str = Field(description="created, replaced or unchanged")
    backup: str | None = Field(default=None, description="Where the old version is kept for some days")

    def text(self) -> str:
        kept = f" The old version is kept as {self.backup}." if self.backup else ""
        return f"Script {self.name}: {self.outcome}.{kept}"


class ScriptDeleted(Result):
    name: str
    backup: str = Field(description="Where it is kept for some days; save_script with its fields brings it back")

    def text(self) -> str:
        return f"Script {self.name} is deleted. It is kept as {self.backup} for some days; save_script brings it back."


class ScriptReport(RunReport):
    """How a script went."""

    name: str = ""
    saved: str | None = Field(default=None, description="created, replaced or unchanged, when it was saved first")
    backup: str | None = Field(default=None, description="Where its old version is kept for some days")
