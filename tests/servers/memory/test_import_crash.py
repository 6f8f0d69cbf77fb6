"""A kill -9 during an import leaves nothing of it, and doing it again brings in all of it, once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import func, select

from annabelle.core.failpoints import VARIABLE
from annabelle.embeddings import EmbeddingConfig
from annabelle.servers.memory.config import FAILPOINTS, MemoryConfig
from annabelle.servers.memory.transfer import BATCH
from annabelle.store.memory.tables import facts, import_rows
from servers.memory.memories import MakeMemory
from support.timing import seconds

SCRIPT = Path(__file__).parent / "importing_process.py"
ROWS = BATCH + 200
PATIENCE = 60


def run(config: MemoryConfig, armed: Path) -> subprocess.CompletedProcess[str]:
    folders = os.pathsep.join([str(SCRIPT.parents[2]), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, VARIABLE: str(armed), "PYTHONPATH": folders, "EMBEDDING_PROVIDER": "none"}
    if config.database_url is not None:
        environment["DATABASE_URL"] = config.database_url
    command = [sys.executable, str(SCRIPT), "many.jsonl"]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=seconds(PATIENCE), check=False
    )


@pytest.mark.req("MEM-08")
async def test_a_killed_import_is_nothing_or_all_and_goes_on_where_it_stopped(
    open_memory: MakeMemory, config: MemoryConfig, tmp_path: Path
) -> None:
    config.workspace.mkdir(exist_ok=True)
    lines = [{"fact": f"Number {number} is odd in its own way.", "category": "background"} for number in range(ROWS)]
    (config.workspace / "many.jsonl").write_text("\n".join(map(json.dumps, lines)))
    armed = tmp_path / "armed"
    armed.mkdir()

    async def counts() -> tuple[int, int]:
        memory = open_memory(config)
        library = await memory.library()
        tables = (facts, import_rows)
        found = await library.database.read(
            lambda c: tuple(c.execute(select(func.count()).select_from(table)).scalar_one() for table in tables)
        )
        assert await library.database.problems() == []
        await memory.close()
        return found[0], found[1]

    for point, staged in zip(FAILPOINTS, (BATCH, ROWS), strict=True):
        (armed / point).touch()
        killed = run(config, armed)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert await counts() == (0, staged)

    done = run(config, armed)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["outcome"] == {"facts": {"added": ROWS}}
    assert await counts() == (ROWS, 0)
    memory = open_memory(config, embedding=EmbeddingConfig(provider="none"))
    again = await memory.as_person()("import_memory", file_path="many.jsonl")
    assert again.outcome == {"facts": {"known": ROWS}}
    found = await memory.as_()("retrieve_memories", query="Number 577 odd")
    assert "Number 577 is odd" in found.to_text()
