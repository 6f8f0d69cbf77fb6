"""The tool that runs a piece of code once."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.servers.codexec.programs import Language
from annabelle.servers.codexec.report import RunReport
from annabelle.servers.codexec.workshop import Workshop
from annabelle.servers.kit import tool

MAX_CODE_CHARS = 1_000_000

LanguageArgument = Annotated[Language, Field(description="python, node or bash")]
Code = Annotated[str, Field(max_length=MAX_CODE_CHARS, description="The code to run")]
Timeout = Annotated[int | None, Field(ge=1, description="Time it may take in milliseconds; by default 30000")]
WorkingDir = Annotated[
    str | None,
    Field(max_length=4_096, description="Folder of the workspace to work in; by default a private one"),
]


class Executing:
    """execute_code."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def execute_code(
        self, language: LanguageArgument, code: Code, timeout_ms: Timeout = None, working_dir: WorkingDir = None
    ) -> RunReport:
        """Run a Python, Node or Bash script in a sandbox and get its output, to compute, plot or work through data. It
        sees no files but those in working_dir and, unless the person allows it, no network. Files it makes without a
        working_dir are copied to Code/results in the workspace."""
        seconds = self._workshop.seconds(timeout_ms)
        async with self._workshop.bench(working_dir) as bench:
            return await self._workshop.run_code(language, code, bench, seconds)
