"""A memory in a process of its own that imports one file, to be killed while it does."""

from __future__ import annotations

import asyncio
import sys

from annabelle.servers.memory.config import MemoryConfig
from servers.memory.memories import Memory

BATCH = 50


async def import_file(file_path: str) -> str:
    memory = Memory(MemoryConfig.from_environment())
    done = await memory.as_person()("import_memory", file_path=file_path, batch_size=BATCH)
    await memory.close()
    return str(done.model_dump_json())


def main() -> None:
    sys.stdout.write(asyncio.run(import_file(sys.argv[1])))
