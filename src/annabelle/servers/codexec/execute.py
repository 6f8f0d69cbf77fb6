"""The execute_code tool."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.servers.codexec.code_runner import CodeRunner
from annabelle.servers.codexec.execution import RunReport
from annabelle.servers.codexec.languages import Language
from annabelle.servers.kit import tool

MAX_CODE_CHARS = 1_000_000

LanguageArgument = Annotated[Language, Field(description="python, node or bash")]
Code = Annotated[str, Field(max_length=MAX_CODE_CHARS, description="The code to run")]
Timeout = Annotated[int | None, Field(ge=1, description="Time it may take in milliseconds; by default 30000")]
WorkingDir = Annotated[
    str | None,
    Field(max_length=4_096, description="Folder of the workspace to work in; by default a private one"),
]


class ExecuteTool:
    def __init__(self, runner: CodeRunner) -> None:
        self._runner = runner

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def execute_code(
        self, language: LanguageArgument, code: Code, timeout_ms: Timeout = None, working_dir: WorkingDir = None
    ) -> RunReport:
        """Run a Python, Node or Bash script in a sandbox and get its output, to compute, plot or work through data. It
        sees no files but those in working_dir and, unless the person allows it, no network. Files it makes without a
        working_dir are copied to Code/results in the workspace."""
        seconds = self._runner.resolve_timeout(timeout_ms)
        async with self._runner.work_folder(working_dir) as work_folder:
            return await self._runner.run_code(language, code, work_folder, seconds)
