"""A memory in a process of its own that imports one file, to be killed while it does."""

from __future__ import annotations

import asyncio
import sys

from annabelle.servers.memory.config import MemoryConfig
from servers.memory.memories import Memory


async def main(file_path: str) -> None:
    memory = Memory(MemoryConfig.from_environment())
    done = await memory.as_person()("import_memory", file_path=file_path)
    await memory.close()
    sys.stdout.write(done.model_dump_json())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
