"""Builds the code server."""

from __future__ import annotations

from annabelle.servers.codexec.calculate import CalculateTool
from annabelle.servers.codexec.code_runner import CodeRunner
from annabelle.servers.codexec.config import CodeConfig
from annabelle.servers.codexec.execute import ExecuteTool
from annabelle.servers.codexec.isolation.selection import IsolationSelector
from annabelle.servers.codexec.packages import PackageInstaller, PackageTools
from annabelle.servers.codexec.script_library import ScriptLibrary
from annabelle.servers.codexec.script_tools import ScriptTools
from annabelle.servers.codexec.session_pool import SessionPool
from annabelle.servers.codexec.session_tools import SessionTools
from annabelle.servers.kit import ToolServer

INSTRUCTIONS = (
    "Runs Python, Node and Bash in a sandbox without network: once, in a session that remembers, or from the library "
    "of scripts. For plain arithmetic use calculate."
)


def build(config: CodeConfig | None = None, isolation: IsolationSelector | None = None) -> ToolServer:
    """The code server with all its tools. The first call finds out whether code can be isolated."""
    runner = CodeRunner(config or CodeConfig.from_environment(), isolation)
    pool, installer = SessionPool(runner), PackageInstaller(runner)
    library = ScriptLibrary(runner.config.data / "scripts")
    calculating = CalculateTool()

    async def close() -> None:
        await pool.close()
        await calculating.close()
        runner.folders.close()

    return ToolServer(
        "codexec",
        [
            ExecuteTool(runner),
            SessionTools(runner, pool),
            PackageTools(runner, pool, installer),
            ScriptTools(runner, library, installer),
            calculating,
        ],
        instructions=INSTRUCTIONS,
        on_close=close,
        readiness=runner.isolation.missing,
    )
