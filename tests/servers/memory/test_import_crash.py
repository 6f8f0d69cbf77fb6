"""A kill -9 during an import leaves nothing of it, and doing it again brings in all of it, once."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest
from sqlalchemy import func, select

from annabelle.core.failpoints import VARIABLE
from annabelle.embeddings import EmbeddingConfig
from annabelle.servers.memory.config import FAILPOINTS, MemoryConfig
from annabelle.store.memory.tables import facts, import_rows
from servers.memory.importing_process import BATCH
from servers.memory.memories import MakeMemory
from support.timing import seconds
from support.warm_process import TEMPLATE

ROWS = BATCH + 20
PATIENCE = 60


def run(config: MemoryConfig, armed: Path) -> tuple[int | None, str, str]:
    """How the process ended, and what it said on both streams."""
    environment = {**os.environ, VARIABLE: str(armed), "EMBEDDING_PROVIDER": "none"}
    if config.database_url is not None:
        environment["DATABASE_URL"] = config.database_url
    process = TEMPLATE.spawn("servers.memory.importing_process", environment, ["many.jsonl"])
    out, errors = process.communicate(seconds(PATIENCE))
    return process.returncode, out, errors


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
        code, _, errors = run(config, armed)
        assert code == -signal.SIGKILL, errors
        assert await counts() == (0, staged)

    code, out, errors = run(config, armed)
    assert code == 0, errors
    assert json.loads(out)["outcome"] == {"facts": {"added": ROWS}}
    assert await counts() == (ROWS, 0)
    memory = open_memory(config, embedding=EmbeddingConfig(provider="none"))
    again = await memory.as_person()("import_memory", file_path="many.jsonl")
    assert again.outcome == {"facts": {"known": ROWS}}
    found = await memory.as_()("retrieve_memories", query="Number 57 odd")
    assert "Number 57 is odd" in found.to_text()
