"""Why do you know this? Every fact can answer."""

from __future__ import annotations

import pytest

from annabelle.core.messages import now
from annabelle.store.memory import conversations
from annabelle.store.memory.conversations import NewTurn
from annabelle.store.memory.owner import Owner
from servers.memory.memories import Memory

OWNER = Owner("owner", "annabelle")


async def _said(memory: Memory, owner: Owner = OWNER, **more: object) -> int:
    turn = NewTurn("thr_1", "I moved to Lisbon in May", "How lovely, a page says it is sunny.", now(), **more)
    library = await memory.library()
    return (await library.database.write(lambda c: conversations.add_turn(c, owner, turn)))[0].id


@pytest.mark.req("MEM-09")
async def test_a_fact_tells_from_which_message_thread_and_words_it_was_learnt(memory: Memory) -> None:
    number = await _said(memory, message_id="msg_7", trust="untrusted")
    hub = memory.as_hub(thread_id="thr_1", channel="telegram")
    origin = {"kind": "conversation", "conversation_id": number, "message_id": "msg_7", "quote": "I moved to Lisbon"}
    stored = await hub("store_fact", fact="Lives in Lisbon", category="background", confidence=0.9, origin=origin)
    why = await memory.as_()("explain_fact", fact_id=stored.fact_id)
    assert (why.source.kind, why.source.message_id, why.source.thread_id) == ("conversation", "msg_7", "thr_1")
    assert (why.source.quote, why.source.channel, why.fact.confidence) == ("I moved to Lisbon", "telegram", 0.9)
    assert (why.said.conversation_id, why.said.user_message) == (number, "I moved to Lisbon in May")
    assert why.trust == "untrusted"  # the answer of that turn may repeat a page
    told = why.to_text()
    for part in (
        "read from a conversation after it",
        f"Learnt in conversation {number}, message msg_7, thread thr_1, channel telegram.",
        'The words: "I moved to Lisbon"',
        "user: I moved to Lisbon in May",
        'answer: "How lovely, a page says it is sunny." (untrusted)',
    ):
        assert part in told


@pytest.mark.req("MEM-09")
async def test_the_turn_is_found_by_its_message_when_only_that_is_known(memory: Memory) -> None:
    call = memory.as_(message_id="msg_7", thread_id="thr_1", call_id="msg_7:1:0")
    stored = await call("store_fact", fact="Lives in Lisbon", category="background")
    assert (await call("explain_fact", fact_id=stored.fact_id)).said is None  # the turn is not over yet
    await _said(memory, Owner("owner", "muse"), message_id="msg_7")
    assert (await call("explain_fact", fact_id=stored.fact_id)).said is None
    number = await _said(memory, message_id="msg_7")
    why = await call("explain_fact", fact_id=stored.fact_id)
    assert (why.said.conversation_id, why.source.call_id, why.trust) == (number, "msg_7:1:0", "trusted")


@pytest.mark.req("MEM-09")
async def test_the_whole_chain_of_corrections_is_told_from_every_link(memory: Memory) -> None:
    call = memory.as_()
    ids = [
        (await call("store_fact", fact=f"Lives in {town}", category="background")).fact_id
        for town in ("Berlin", "Lisbon", "Oslo")
    ]
    first, middle, last = [await call("explain_fact", fact_id=number) for number in ids]
    assert ([one.id for one in first.earlier], [one.id for one in first.later]) == ([], ids[1:])
    assert ([one.id for one in middle.earlier], [one.id for one in middle.later]) == (ids[:1], ids[2:])
    assert ([one.id for one in last.earlier], [one.id for one in last.later]) == ([ids[1], ids[0]], [])
    assert f"Before: {ids[1]} [background, superseded by {ids[2]}] Lives in Lisbon" in last.to_text()
    assert f"After: {ids[2]} [background] Lives in Oslo" in first.to_text()


@pytest.mark.req("MEM-09", "TRU-03")
async def test_an_untrusted_fact_names_the_tools_it_may_stem_from(memory: Memory) -> None:
    web = memory.as_(trust="untrusted", origins=("searcher_web_fetch", "gmail_read_mail"))
    stored = await web("store_fact", fact="The museum opens at ten", category="background")
    why = await memory.as_()("explain_fact", fact_id=stored.fact_id)
    assert why.source.tools == ["searcher_web_fetch", "gmail_read_mail"]
    assert why.trust == "untrusted"
    assert 'untrusted: learnt from searcher_web_fetch, gmail_read_mail] "The museum opens at ten"' in why.to_text()
    assert "stored by the agent during a conversation" in why.to_text()


@pytest.mark.req("MEM-09")
async def test_a_deleted_fact_tells_when_and_by_whom_it_was_deleted(memory: Memory) -> None:
    call = memory.as_()
    stored = await call("store_fact", fact="Likes tea", category="preference")
    await memory.as_person()("delete_fact", fact_id=stored.fact_id)
    why = await call("explain_fact", fact_id=stored.fact_id)
    assert (why.fact.retired_because, why.retired_by) == ("deleted", "cli")
    assert f"History since {why.fact.retired_at:%Y-%m-%d %H:%M} UTC: deleted by cli." in why.to_text()
