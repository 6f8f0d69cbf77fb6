"""A boot is quick because nobody waits for anybody, and nobody imports what it does not need."""

import subprocess
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from annabelle.toolbox.config import ManifestFolder, ToolboxConfig
from annabelle.toolbox.facade import Toolbox
from support.timing import seconds

Start = Callable[[ToolboxConfig], Awaitable[Toolbox]]

MEETS_THE_OTHERS = """
import os, time
from support.servers.stage import Prop, Stage

async def nothing(arguments, context):
    return "nothing"

def main():
    folder = os.environ["HOME"]
    open(f"{folder}/here-NAME", "w").close()
    while len([name for name in os.listdir(folder) if name.startswith("here-")]) < 4:
        time.sleep(0.01)
    Stage("NAME", [Prop("nothing", nothing)]).run()
"""


@pytest.mark.req("HUB-06", "HUB-02")
async def test_servers_start_side_by_side(config: ToolboxConfig, start: Start, tmp_path: Path) -> None:
    package = tmp_path / "meeting"
    for name in ("north", "east", "south", "west"):
        folder = package / name
        folder.mkdir(parents=True)
        (folder / "manifest.toml").write_text(f'name = "{name}"\nlabel = "{name.title()}"\n')
        (folder / "__main__.py").write_text(MEETS_THE_OTHERS.replace("NAME", name))
    toolbox = await start(
        replace(
            config,
            manifest_folders=(ManifestFolder(package, "meeting"),),
            python_path=(*config.python_path, str(tmp_path)),
        )
    )
    assert [status.state for status in toolbox.servers()] == ["ready"] * 4, "each waited for all the others to run"


@pytest.mark.req("HUB-06")
@pytest.mark.parametrize(
    ("module", "too_heavy"),
    [
        ("annabelle.toolbox.facade", {"mcp", "mcp_types", "watchfiles", "fastapi", "starlette", "dbos"}),
        ("annabelle.toolbox.process.forkserver_process", {"pydantic", "jsonschema", "asyncio"}),
        ("annabelle.toolbox.process.forkserver", {"pydantic", "asyncio", "mcp"}),
        ("annabelle.hub.boot", {"mcp", "annabelle.hub.api.page", "annabelle.hub.api.goals", "annabelle.hub.api.tools"}),
    ],
)
def test_nothing_heavy_is_imported_before_it_is_needed(module: str, too_heavy: set[str]) -> None:
    script = f"import sys, {module}; print(sorted({too_heavy!r} & set(sys.modules)))"
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=seconds(60)
    )
    assert shown.stdout.strip() == "[]"
