"""Processes for crash tests: `worker FLOWS_URL DATABASE_URL WITNESS COMMAND …`. Each effect is a line in WITNESS."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from annabelle.core.backoff import RetryPolicy
from annabelle.core.clock import SystemClock
from annabelle.core.errors import ProviderDown, ProviderRateLimited
from annabelle.core.failpoints import failpoint
from annabelle.core.messages import InboundMessage
from annabelle.core.tools import JsonObject
from annabelle.durable.engine import Durable
from annabelle.durable.thread_queue import ThreadQueue
from annabelle.store import claims, messages, threads
from annabelle.store.database import Database

QUICK = RetryPolicy(base_seconds=0.05, cap_seconds=0.2, immediate_seconds=0.05)


class Witness:
    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, name: str, **more: object) -> None:
        line = json.dumps({"name": name, "pid": os.getpid(), "at": time.time(), **more}) + "\n"
        descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)

    def count(self, name: str) -> int:
        if not self._path.exists():
            return 0
        return sum(json.loads(line)["name"] == name for line in self._path.read_text().splitlines())


def register(durable: Durable, witness: Witness) -> None:
    @durable.workflow("steps")
    async def steps(argument: JsonObject) -> JsonObject:
        done: list[object] = []
        for number in range(4):

            async def work(number: int = number) -> object:
                witness.note(f"step {number}")
                failpoint(f"test.in_step_{number}")
                return f"result {number}"

            done.append(await durable.step(f"step {number}", work))
        return {"done": done, "asked": argument}

    @durable.workflow("flaky")
    async def flaky(argument: JsonObject) -> JsonObject:
        async def work() -> object:
            witness.note("try")
            tries = witness.count("try")
            failpoint(f"test.in_try_{tries}")
            if tries < 5:
                raise ProviderRateLimited("slow down", hint="later")
            return tries

        return {"tries": await durable.step("call", work, retry=QUICK)}

    @durable.workflow("hopeless")
    async def hopeless(argument: JsonObject) -> JsonObject:
        async def work() -> object:
            witness.note("try")
            if witness.count("try") == 4:
                failpoint("test.in_fourth_try")
            raise ProviderDown("gone", hint="later")

        return {"never": await durable.step("call", work, retry=QUICK)}

    @durable.workflow("together")
    async def together(argument: JsonObject) -> JsonObject:
        async def work(number: int) -> object:
            witness.note(f"part {number}")
            # The later it starts, the sooner it ends; the last but one dies first.
            await asyncio.sleep(0.05 * (5 - number))
            if number == 1:
                failpoint("test.in_part_1")
            return number * 10

        parts = await asyncio.gather(*(durable.step(f"part {n}", lambda n=n: work(n)) for n in range(5)))
        return {"parts": parts}

    @durable.workflow("asks")
    async def asks(argument: JsonObject) -> JsonObject:
        witness.note("asking")
        failpoint("test.before_wait")
        answer = await durable.wait("answer", 30)
        witness.note("answered", answer=answer)
        failpoint("test.after_wait")
        return {"answer": answer}


async def turns(database_url: str, durable: Durable, witness: Witness, total: int) -> None:
    """Eight chats, offered all at once on the first run; killed anywhere, run again until all is done."""
    db = await Database.open(database_url)
    lanes: ThreadQueue

    @durable.workflow("turn")
    async def turn(argument: JsonObject) -> JsonObject:
        message_id = str(argument["message_id"])

        async def answer() -> object:
            message = await db.read(lambda c: messages.load_message(c, message_id))
            witness.note("turn", chat=message.chat_id, text=message.content)
            await asyncio.sleep(0.002)
            return message.content

        content = await durable.step("answer", answer)

        # A step of its own, as in the hub: until the answer is recorded, the thread does nothing else.
        async def deliver() -> object:
            def finish(c) -> None:
                if messages.set_message_state(c, message_id, "done"):
                    messages.add_reply(c, reply_to=message_id, content=f"re: {content}")
                claims.release_claim(c, message_id)

            await db.write(finish)
            return None

        await durable.step("deliver", deliver)

        async def next_one() -> object:
            await lanes.finish_message(message_id)
            return None

        await durable.step("next", next_one)
        return {}

    async def start(message_id: str) -> None:
        await durable.start("turn", message_id, {"message_id": message_id})

    lanes = ThreadQueue(db, durable, SystemClock(), "hub", 4, start)
    await durable.launch()
    await lanes.recover()

    def send(c, number: int) -> str:
        chat = f"chat{number % 8}"
        thread = threads.find_or_create_thread(c, channel="test", chat_id=chat, user_id="owner", agent_id="a")
        message = InboundMessage(channel="test", chat_id=chat, sender_id="s", text=f"{number}", external_id=f"{number}")
        return messages.queue_message(c, thread, message, messages.QueueLimits(per_thread=1000)).message.thread_id

    for number in range(total):
        await lanes.start_next(await db.write(lambda c, n=number: send(c, n)))

    def left(c) -> int:
        return c.exec_driver_sql("SELECT count(*) FROM messages WHERE state IN ('queued', 'running')").scalar_one()

    async with asyncio.timeout(60):
        while await db.read(left) or await durable.pending():  # noqa: ASYNC110  the end is in the database
            await asyncio.sleep(0.02)
    await durable.close()
    await db.close()


async def work(arguments: list[str]) -> None:
    flows_url, database_url, witness_path, command, *rest = arguments
    witness = Witness(Path(witness_path))
    durable = Durable(name="hub-tests", executor_id="hub", database_url=flows_url, schema="flows")
    if command == "turns":
        await turns(database_url, durable, witness, int(rest[0]))
        return
    register(durable, witness)
    await durable.launch()
    if command == "start":
        await durable.start(rest[0], rest[1], {"from": rest[0]})
    if command == "many":
        await asyncio.gather(*(durable.start(rest[0], rest[1], {}) for _ in range(20)))
    if command == "answer":
        await durable.signal(rest[1], "answer", "yes")
    try:
        witness.note("result", result=await durable.result(rest[1], 30))
    finally:
        await durable.close()


def main() -> None:
    asyncio.run(work(sys.argv[1:]))
