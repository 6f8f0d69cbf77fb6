"""The event stream of a turn: numbered, replayed, and light."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from annabelle.thinker.live_turn import DeltaBuffer, TurnStream
from support.timing import seconds


async def read(stream: TurnStream, after: int = 0, known: str | None = None) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    async for chunk in stream.lines(after, known):
        lines += [json.loads(line) for line in chunk.splitlines()]
    return lines


@pytest.mark.req("LLM-04")
async def test_a_follower_reads_what_was_and_what_comes_until_the_end() -> None:
    stream = TurnStream("st_1", "msg_1")
    stream.add_fact("usage", "1:usage", {})
    reader = asyncio.create_task(read(stream))
    await asyncio.sleep(0)
    stream.add_fact("notice", "n", {"text": "later"})
    stream.close()
    assert [(line["n"], line["event"]["key"]) for line in await asyncio.wait_for(reader, seconds(5))] == [
        (1, "1:usage"),
        (2, "n"),
    ]


async def test_a_follower_that_comes_back_goes_on_and_one_of_another_process_starts_over() -> None:
    stream = TurnStream("st_2", "msg_1")
    for number in range(4):
        stream.add_fact("notice", str(number), {})
    stream.close()
    assert [line["n"] for line in await read(stream, 2, "st_2")] == [3, 4]
    assert [line["n"] for line in await read(stream, 2, "st_1")] == [1, 2, 3, 4]


async def test_a_fact_is_said_once_however_often_it_is_told() -> None:
    stream = TurnStream("st_1", "msg_1")
    stream.add_fact("usage", "1:usage", {"input_tokens": 1})
    stream.add_fact("usage", "1:usage", {"input_tokens": 2})
    stream.close()
    assert [line["event"]["data"] for line in await read(stream)] == [{"input_tokens": 1}]


async def test_deltas_give_way_to_the_whole_text() -> None:
    stream = TurnStream("st_1", "msg_1")
    for number in range(1, 4):
        stream.add_delta("text", "x", step=1, attempt=100, number=number)
    stream.add_fact("text", "1:text", {"text": "xxx", "final": True}, step=1, attempt=100)
    stream.close()
    lines = await read(stream)
    assert [(line["n"], line["event"]["key"]) for line in lines] == [(4, "1:text")]


async def test_facts_can_be_told_again_by_another_process() -> None:
    first = TurnStream("st_1", "msg_1")
    first.add_fact("usage", "1:usage", {"input_tokens": 1}, step=1)
    first.add_delta("text", "lost", step=2, attempt=100, number=1)
    second = TurnStream("st_2", "msg_1")
    second.replay(json.loads(json.dumps(first.facts())))
    second.close()
    assert [(line["stream"], line["event"]["key"]) for line in await read(second)] == [("st_2", "1:usage")]


async def test_quick_deltas_are_joined_and_the_first_goes_out_at_once() -> None:
    stream = TurnStream("st_1", "msg_1")
    buffer = DeltaBuffer(stream, step=1, attempt=100)
    for letter in "abcdef":
        buffer.add("text", letter)
    buffer.add("think", "hm")
    buffer.close()
    stream.close()
    events = [line["event"] for line in await read(stream)]
    assert [(event["type"], event["data"]["text"]) for event in events] == [
        ("text", "a"),
        ("text", "bcdef"),
        ("think", "hm"),
    ]
    assert [event["key"] for event in events] == ["1:100:1", "1:100:2", "1:100:3"]


async def test_joined_deltas_go_out_by_themselves_after_a_moment() -> None:
    stream = TurnStream("st_1", "msg_1")
    buffer = DeltaBuffer(stream, step=1, attempt=100)
    buffer.add("text", "a")
    buffer.add("text", "b")
    seen = []
    async with asyncio.timeout(seconds(5)):
        async for chunk in stream.lines(0, None):
            seen += [json.loads(line)["event"]["data"]["text"] for line in chunk.splitlines()]
            if seen == ["a", "b"]:
                break
    buffer.close()


@pytest.mark.req("FST-01")
async def test_a_name_that_arrives_in_pieces_is_rewritten_whole() -> None:
    stream = TurnStream("st_1", "msg_1")
    buffer = DeltaBuffer(stream, step=1, attempt=100, rewrite=lambda text: text.replace("write_note", "write note"))
    for piece in ("I use wri", "te_", "note", ", then tell"):
        buffer.add("text", piece)
        await asyncio.sleep(DeltaBuffer.INTERVAL_SECONDS * 1.5)
    buffer.close()
    stream.close()
    said = [line["event"]["data"]["text"] for line in await read(stream)]
    assert "".join(said) == "I use write note, then tell"
    assert said[0] == "I use ", "the rest may be the beginning of a name"
