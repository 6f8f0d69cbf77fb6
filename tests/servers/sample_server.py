"""A server made of the kit that does what a test needs: answers, waits, prints, fails."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import NotAllowed
from annabelle.servers.kit import Result, StopSign, ToolServer, current_call, in_thread, run, tool

Text = Annotated[str, Field(description="Any text")]


class Said(Result):
    said: str


class Caller(Result):
    agent_id: str | None
    user_id: str | None
    trace_id: str | None
    chat_id: str | None
    call_id: str | None


class Whole(Result):
    caller: str | None
    thread_id: str | None
    channel: str | None
    trust: str | None
    origins: tuple[str, ...]


class Sample:
    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def echo(self, text: Text = "hello") -> Said:
        """Say it back."""
        return Said(said=text)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def whoami(self) -> Caller:
        """Tell who calls."""
        call = current_call()
        return Caller(
            agent_id=call.agent_id,
            user_id=call.user_id,
            trace_id=call.trace_id,
            chat_id=call.chat_id,
            call_id=call.call_id,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False, audience="people")
    async def whence(self) -> Whole:
        """Tell where a call comes from."""
        call = current_call()
        return Whole(
            caller=call.caller,
            thread_id=call.thread_id,
            channel=call.channel,
            trust=call.trust,
            origins=call.origins,
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def chatter(self) -> Said:
        """Print on standard output, which is the protocol's."""
        print("stray words")  # noqa: T201  the point of this tool
        os.write(1, b"more stray words\n")
        await (await asyncio.create_subprocess_exec("echo", "words of a child")).wait()
        return Said(said="done")

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def break_down(self) -> Said:
        """Fail in a way nobody thought of."""
        raise RuntimeError("/secret/path and sk-ant-0123456789abcdef0123")

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def refuse(self) -> Said:
        """Refuse."""
        raise NotAllowed("Not today.", hint="Try tomorrow.", field="day")

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def much(self, count: Annotated[int, Field(description="How many characters")]) -> Said:
        """Say a lot."""
        return Said(said="x" * count)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def count(self, to: Annotated[int, Field(description="How far")]) -> Said:
        """Count, and report it."""
        for number in range(1, to + 1):
            await current_call().progress(number, to, f"{number} of {to}")
        return Said(said=str(to))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def work_until_stopped(self, folder: Annotated[str, Field(description="Where to leave traces")]) -> Said:
        """Work in a thread until cancelled; leaves a file `begun`, and a file `stopped` when it noticed."""

        def work(stop: StopSign) -> Said:
            (Path(folder) / "begun").touch()
            ends = time.monotonic() + 30
            try:
                while time.monotonic() < ends:
                    stop.check()
            finally:
                (Path(folder) / "stopped").touch()
            return Said(said="nobody stopped me")

        return await in_thread(work)


def sample() -> ToolServer:
    return ToolServer("sample", [Sample()], max_result_bytes=10_000)


def main() -> None:
    run(sample)


if __name__ == "__main__":
    main()
