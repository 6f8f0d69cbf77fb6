"""Lacks something until a file is there; without being told which file, it can not even say what it lacks."""

import os

import anyio

from annabelle.servers.kit import Result, ToolServer, run, tool

SENTENCE = "The file is not there. Run: touch it"


class Nothing(Result):
    done: bool = True


class Idle:
    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def idle(self) -> Nothing:
        """Do nothing."""
        return Nothing()


async def missing() -> str | None:
    return None if await anyio.Path(os.environ["NEEDED_FILE"]).exists() else SENTENCE


def main() -> None:
    run(lambda: ToolServer("needy", [Idle()], readiness=missing))


if __name__ == "__main__":
    main()
