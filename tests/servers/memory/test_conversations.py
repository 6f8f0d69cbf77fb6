"""Conversations: each delivered turn once, nothing lost but secrets, and read for facts once."""

from __future__ import annotations

import asyncio
import logging

import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.core.secrets.redactor import MASK
from annabelle.embeddings import EmbeddingsUnavailable
from annabelle.servers.memory.conversations import KEPT_CHARACTERS
from annabelle.store.memory import conversations
from annabelle.store.memory.owner import Owner
from servers.memory.memories import CallTool, Memory

OWNER = Owner("owner", "annabelle")


async def store(call: CallTool, said: str, answered: str = "Noted.", **more: object) -> int:
    return (await call("store_conversation", user_message=said, agent_response=answered, **more)).conversation_id


async def row(memory: Memory, number: int) -> conversations.StoredTurn:
    library = await memory.library()
    return (await library.database.read(lambda c: conversations.get_turns(c, OWNER, [number])))[number]


@pytest.mark.req("MEM-12")
async def test_a_delivered_message_is_one_turn_however_often_and_at_once_it_comes(memory: Memory) -> None:
    hub = memory.as_hub(message_id="msg_1", thread_id="th_1")
    answers = await asyncio.gather(
        *(hub("store_conversation", user_message=f"Try {n}", agent_response="Yes") for n in range(8))
    )
    first = next(answer for answer in answers if answer.status == "stored")
    assert [answer.status for answer in answers].count("stored") == 1
    assert {answer.conversation_id for answer in answers} == {first.conversation_id}
    again = await hub("store_conversation", user_message="Try once more", agent_response="Yes")
    assert (again.conversation_id, again.status) == (first.conversation_id, "known")
    turn = await row(memory, first.conversation_id)
    assert turn.user_message.startswith("Try ")
    assert (turn.message_id, turn.session_id) == ("msg_1", "th_1")
    found = await memory.as_()("search_conversations", query="try")
    assert [hit.id for hit in found.conversations] == [first.conversation_id]
    other = memory.as_hub("bob", message_id="msg_1")
    assert (await other("store_conversation", user_message="Mine", agent_response="")).status == "stored"


@pytest.mark.req("MEM-12")
async def test_only_the_hub_says_which_message_a_turn_is(memory: Memory) -> None:
    agent = memory.as_(message_id="msg_1")
    first, second = await store(agent, "What I was told"), await store(agent, "What I was told")
    assert first != second
    assert (await row(memory, first)).message_id is None
    hub = memory.as_hub(message_id="msg_1")
    assert (await hub("store_conversation", user_message="Delivered", agent_response="")).status == "stored"


@pytest.mark.req("MEM-12")
async def test_a_turn_keeps_what_is_known_of_it(memory: Memory) -> None:
    number = await store(
        memory.as_(chat_id="chat", trust="untrusted"),
        "  Hello\x00 there\ud800 ",
        "Hi",
        session_id="s1",
        tags=["trip", "trip", "sea"],
        tools=["mail_read"],
        said_at="2023-05-08T13:56",
        speaker="Caroline",
    )
    turn = await row(memory, number)
    assert (turn.user_message.startswith("Hello there"), turn.agent_response) == (True, "Hi")
    assert (turn.session_id, turn.tags, turn.tools, turn.speaker) == ("s1", ("trip", "sea"), ("mail_read",), "Caroline")
    assert (turn.said_at.isoformat(), turn.trust) == ("2023-05-08T13:56:00+00:00", "untrusted")
    found = await memory.as_()("search_conversations", query="hello")
    assert found.trust == found.conversations[0].trust == "untrusted"
    assert "(untrusted)" in found.to_text()
    unnamed = await row(memory, await store(memory.as_(chat_id="chat"), "And this"))
    assert unnamed.session_id == "chat"


async def test_what_is_no_turn_is_refused_and_says_why(memory: Memory) -> None:
    call = memory.as_()
    with pytest.raises(InvalidArguments, match="nothing to remember"):
        await store(call, " \x00 ", "")
    with pytest.raises(InvalidArguments, match="said_at is not a date"):
        await store(call, "Hello", said_at="the other day")
    with pytest.raises(InvalidArguments, match="message_id"):
        await store(call, "Hello", message_id="msg_9")
    with pytest.raises(NotAllowed):
        await store(memory.as_(None, None), "Hello")  # type: ignore[arg-type]
    with pytest.raises(NotAllowed):
        await store(call, "Hello", agent_id="somebody-else")
    assert await store(memory.as_(), "Hello", agent_id="main")


@pytest.mark.req("MEM-05")
async def test_a_secret_is_masked_and_nothing_else_is_lost(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    key = "sk-" + "a1B2c3D4" * 5
    with caplog.at_level(logging.INFO):
        stored = await memory.as_()(
            "store_conversation",
            user_message=f"My key is {key}, please use it for the weather",
            agent_response=f"I will use {key} for the weather.",
        )
    turn = await row(memory, stored.conversation_id)
    assert key not in turn.user_message + turn.agent_response
    assert turn.user_message == f"My key is {MASK}, please use it for the weather"
    assert turn.agent_response == f"I will use {MASK} for the weather."
    assert stored.masked
    assert stored.masked[0] in stored.to_text()
    assert key not in stored.to_text() + caplog.text
    assert stored.masked[0] in caplog.text
    found = await memory.as_()("search_conversations", query="weather")
    assert found.conversations[0].id == stored.conversation_id


async def test_a_very_long_message_is_kept_from_its_beginning_and_that_is_said(memory: Memory) -> None:
    long = "The beginning about zebras. " + "and so on " * 100_000
    stored = await memory.as_()("store_conversation", user_message=long, agent_response="Fine.")
    assert stored.shortened
    assert f"{KEPT_CHARACTERS:,}" in stored.to_text()
    turn = await row(memory, stored.conversation_id)
    assert len(turn.user_message) <= KEPT_CHARACTERS
    found = await memory.as_()("search_conversations", query="zebras")
    assert found.conversations[0].id == stored.conversation_id
    assert len(found.conversations[0].user_message) <= 2000
    short = await memory.as_()("store_conversation", user_message="Short", agent_response="")
    assert not short.shortened


@pytest.mark.req("MEM-07")
async def test_turns_are_read_for_facts_once_the_last_ones_in_their_order(memory: Memory) -> None:
    hub = memory.as_hub()
    ids = [await store(hub, f"Turn {n}", session_id="a" if n % 2 else "b", tools=["mail_read"]) for n in range(6)]
    unread = await hub("list_unextracted", limit=4)
    assert [turn.conversation_id for turn in unread.turns] == ids[2:]
    here = await hub("list_unextracted", session_id="a")
    assert [turn.user for turn in here.turns] == ["Turn 1", "Turn 3", "Turn 5"]
    assert here.turns[0].tools == ("mail_read",)
    assert (await hub("mark_extracted", conversation_ids=ids[:4])).marked == 4
    assert (await hub("mark_extracted", conversation_ids=ids[:5])).marked == 1
    assert [turn.conversation_id for turn in (await hub("list_unextracted")).turns] == ids[5:]


@pytest.mark.incident("I-30")
async def test_nobody_reads_or_marks_turns_of_another_owner(memory: Memory) -> None:
    number = await store(memory.as_hub(), "Mine alone")
    for stranger in (memory.as_hub("bob"), memory.as_hub("owner", "researcher")):
        assert (await stranger("list_unextracted")).turns == []
        assert (await stranger("mark_extracted", conversation_ids=[number])).marked == 0
    assert [turn.conversation_id for turn in (await memory.as_hub()("list_unextracted")).turns] == [number]


async def test_a_turn_is_kept_while_there_are_no_vectors_and_gets_them_later(memory: Memory) -> None:
    library = await memory.library()
    works, library.embedder = library.embedder, _Down(library.embedder.model)
    number = await store(memory.as_(), "Her physician is Dr Okafor")
    assert (await row(memory, number)).user_message == "Her physician is Dr Okafor"
    library.embedder = works
    await library.reembedding.embed_batch(10)
    found = await memory.as_()("search_conversations", query="Which doctor?")
    assert found.tier == "hybrid"
    assert found.conversations[0].parts.vector > 0.2


class _Down:
    """An embedder whose server does not answer."""

    def __init__(self, model: object) -> None:
        self.model = model

    async def embed(self, texts: object, *, query: bool = False) -> object:
        raise EmbeddingsUnavailable("No vectors for now.")

    async def close(self) -> None:
        pass
