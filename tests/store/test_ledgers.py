"""Calls, costs, pauses, deliveries and sessions: each is written down once and read back as it was."""

from __future__ import annotations

import asyncio

import pytest
from sqlalchemy import select

from annabelle.core.contract import ModelCall, Reserve, TokenUsage
from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import now
from annabelle.store import cost_control, goals, ledger, message_state, messages, sessions, tool_calls
from annabelle.store.database import Database
from annabelle.store.goals import NewGoal
from annabelle.store.tables import model_calls
from annabelle.store.tool_calls import NewToolCall, StartedToolCall


def call(call_id: str = "msg_1:0:0", **fields: object) -> NewToolCall:
    return NewToolCall(
        **{"call_id": call_id, "tool": "filer_write", "arguments_hash": "h", "user_id": "owner", **fields}
    )


@pytest.mark.req("DUR-03")
async def test_a_tool_call_is_fresh_once_then_in_doubt_until_it_has_a_result(db: Database) -> None:
    assert await db.write(lambda c: tool_calls.begin_call(c, call())) == StartedToolCall("fresh")
    assert await db.write(lambda c: tool_calls.begin_call(c, call())) == StartedToolCall("in_doubt")
    await db.write(lambda c: tool_calls.finish_call(c, "msg_1:0:0", {"text": "done"}))
    assert await db.write(lambda c: tool_calls.begin_call(c, call())) == StartedToolCall("finished", {"text": "done"})


@pytest.mark.req("DUR-03")
async def test_an_unknown_outcome_is_kept_and_told_again(db: Database) -> None:
    await db.write(lambda c: tool_calls.begin_call(c, call(message_id="msg_1")))
    await db.write(lambda c: tool_calls.mark_call_unknown(c, "msg_1:0:0", {"text": "nobody knows"}))
    await db.write(lambda c: tool_calls.finish_call(c, "msg_1:0:0", {"text": "too late"}))
    assert await db.write(lambda c: tool_calls.begin_call(c, call())) == StartedToolCall(
        "finished", {"text": "nobody knows"}
    )
    assert await db.read(lambda c: tool_calls.list_unknown_calls(c, "msg_1")) == ["msg_1:0:0"]


async def test_many_tries_to_begin_one_call_dispatch_it_once(db: Database) -> None:
    begun = await asyncio.gather(*(db.write(lambda c: tool_calls.begin_call(c, call())) for _ in range(10)))
    assert sorted(one.state for one in begun) == ["fresh"] + ["in_doubt"] * 9


@pytest.mark.parametrize("change", [{"tool": "filer_delete"}, {"arguments_hash": "other"}, {"user_id": "mallory"}])
async def test_a_call_id_can_not_be_used_for_another_call(db: Database, change: dict[str, object]) -> None:
    await db.write(lambda c: tool_calls.begin_call(c, call()))
    with pytest.raises(Conflict):
        await db.write(lambda c: tool_calls.begin_call(c, call(**change)))


async def test_a_result_of_no_call_is_refused(db: Database) -> None:
    with pytest.raises(NotFound):
        await db.write(lambda c: tool_calls.finish_call(c, "nothing", {}))


def reserve(call_id: str, **fields: object) -> Reserve:
    known = {"agent_id": "annabelle", "user_id": "owner", "message_id": "msg_1", "purpose": "chat"}
    more = {"provider": "groq", "model": "m", "estimated_input_tokens": 10}
    return Reserve.model_validate({"call_id": call_id, **known, **more, **fields})


def settled(call_id: str, cost: float | None = 0.5, **fields: object) -> ModelCall:
    usage = TokenUsage(input_tokens=100, output_tokens=20, cached_tokens=5, cost_usd=cost)
    known = reserve(call_id, **fields).model_dump(
        include={"call_id", "agent_id", "user_id", "message_id", "purpose", "provider", "model"}
    )
    return ModelCall.model_validate({**known, "trace_id": "tr_1", "usage": usage, "duration_ms": 12.5})


@pytest.mark.req("CST-09", "LLM-07")
async def test_a_model_call_is_counted_once_however_often_it_is_told(db: Database) -> None:
    assert await db.write(lambda c: ledger.reserve_call(c, reserve("a"))) == "new"
    assert await db.write(lambda c: ledger.reserve_call(c, reserve("a"))) == "open"
    (open_total,) = await db.read(lambda c: ledger.sum_usage(c, "owner"))
    assert (open_total.calls, open_total.open) == (1, 1)
    for cost in (0.5, 99.0):
        await db.write(lambda c, cost=cost: ledger.settle_call(c, settled("a", cost)))
    (total,) = await db.read(lambda c: ledger.sum_usage(c, "owner"))
    assert (total.calls, total.open) == (1, 0)
    assert total.usage == TokenUsage(input_tokens=100, output_tokens=20, cached_tokens=5, cost_usd=0.5)


@pytest.mark.req("LLM-07")
async def test_a_settled_call_is_stored_with_everything_known_about_it(db: Database) -> None:
    await db.write(lambda c: ledger.reserve_call(c, reserve("a")))
    call = settled("a", provider="ollama", model="n").model_copy(update={"outcome": "error", "error_code": "down"})
    await db.write(lambda c: ledger.settle_call(c, call))
    row = await db.read(lambda c: c.execute(select(model_calls)).mappings().one())
    expected = {**call.model_dump(exclude={"usage"}), **call.usage.model_dump()}
    assert {name: row[name] for name in expected} == expected


async def test_a_call_that_was_never_reserved_is_settled_all_the_same(db: Database) -> None:
    await db.write(lambda c: ledger.settle_call(c, settled("a")))
    assert await db.write(lambda c: ledger.reserve_call(c, reserve("a"))) == "settled"
    (total,) = await db.read(lambda c: ledger.sum_usage(c, "owner"))
    assert total.open == 0


@pytest.mark.req("TRC-04")
@pytest.mark.incident("I-30")
async def test_what_a_trace_took_is_told_of_the_persons_own_calls_only(db: Database) -> None:
    since = now()
    for call_id, user_id in (("a", "owner"), ("b", "bob")):
        await db.write(lambda c, i=call_id, u=user_id: ledger.settle_call(c, settled(i, user_id=u)))
    found = await db.read(lambda c: ledger.sum_trace_usage(c, "owner", ["tr_1"], since))
    assert (found["tr_1"].calls, found["tr_1"].usage.cost_usd) == (1, 0.5)


@pytest.mark.req("CST-05")
@pytest.mark.incident("I-30")
async def test_a_call_outside_messages_counts_for_the_goal_it_names_if_it_is_the_persons_own(db: Database) -> None:
    own, foreign = [
        (await db.write(lambda c, who=who: goals.add_goal(c, NewGoal(user_id=who, agent_id="a", title="Oboe")))).id
        for who in ("owner", "bob")
    ]
    for goal_id in (own, foreign, "goal_that_is_gone"):
        asked = reserve(f"reserved:{goal_id}", message_id=None, goal_id=goal_id)
        await db.write(lambda c, asked=asked: ledger.reserve_call(c, asked))
        late = settled(f"late:{goal_id}", message_id=None).model_copy(update={"goal_id": goal_id})
        await db.write(lambda c, late=late: ledger.settle_call(c, late))
    totals = await db.read(lambda c: ledger.sum_usage(c, "owner", "goal"))
    assert {one.key: one.calls for one in totals} == {own: 2, "": 4}


@pytest.mark.incident("I-30")
async def test_costs_are_grouped_and_each_person_sees_only_their_own(db: Database) -> None:
    for call_id, fields in (("a", {}), ("b", {"model": "n"}), ("c", {"agent_id": "muse"}), ("d", {"user_id": "bob"})):
        await db.write(lambda c, i=call_id, f=fields: ledger.settle_call(c, settled(i, None if i == "b" else 1.0, **f)))
    by_model = await db.read(lambda c: ledger.sum_usage(c, "owner", "model"))
    assert [(one.key, one.calls, one.usage.cost_usd) for one in by_model] == [("groq/m", 2, 2.0), ("groq/n", 1, None)]
    by_agent = await db.read(lambda c: ledger.sum_usage(c, "owner", "agent"))
    assert [(one.key, one.calls) for one in by_agent] == [("annabelle", 2), ("muse", 1)]
    (day,) = await db.read(lambda c: ledger.sum_usage(c, "bob", "day"))
    assert len(day.key) == len("2026-05-01")
    assert day.calls == 1


async def test_a_pause_lasts_until_it_is_lifted_and_keeps_its_first_reason(db: Database) -> None:
    assert not (await db.read(lambda c: cost_control.get_agent_state(c, "annabelle"))).paused
    first = await db.write(lambda c: cost_control.pause_agent(c, "annabelle", "budget"))
    assert await db.write(lambda c: cost_control.pause_agent(c, "annabelle", "flapping")) == first
    assert await db.read(lambda c: cost_control.list_agent_states(c)) == {"annabelle": first}
    await db.write(lambda c: cost_control.resume_agent(c, "annabelle"))
    assert await db.read(lambda c: cost_control.get_agent_state(c, "annabelle")) == cost_control.AgentState("annabelle")


async def test_a_delivery_remembers_an_attempt_that_never_ended(db: Database, receive) -> None:
    asked = (await receive("hello")).message
    reply = await db.write(lambda c: messages.add_reply(c, reply_to=asked.id, content="hi"))
    for _ in range(2):
        await db.write(lambda c: message_state.create_delivery(c, reply))
        assert (await db.read(lambda c: message_state.get_delivery(c, reply.id))).state == "pending"
    assert (await db.write(lambda c: message_state.begin_delivery(c, reply.id))).state == "pending"
    assert (await db.write(lambda c: message_state.begin_delivery(c, reply.id))).state == "sending"
    assert [one.message_id for one in await db.read(message_state.list_unfinished_deliveries)] == [reply.id]
    await db.write(lambda c: message_state.finish_delivery(c, reply.id, "sent"))
    await db.write(lambda c: message_state.finish_delivery(c, reply.id, "unknown"))
    sent = await db.write(lambda c: message_state.begin_delivery(c, reply.id))
    assert (sent.state, sent.attempts) == ("sent", 2)
    assert await db.read(message_state.list_unfinished_deliveries) == []
    with pytest.raises(NotFound):
        await db.read(lambda c: message_state.get_delivery(c, "msg_none"))


async def test_a_session_is_appended_and_loaded_in_order(db: Database) -> None:
    await db.write(lambda c: sessions.append_session(c, "annabelle", "t1", [{"n": 1}, {"n": 2}], user_id="owner"))
    await db.write(lambda c: sessions.append_session(c, "annabelle", "t1", [{"n": 3}], user_id="owner"))
    await db.write(lambda c: sessions.append_session(c, "muse", "t1", [{"n": 9}], user_id="owner"))
    await db.write(lambda c: sessions.append_session(c, "annabelle", "t2", [], user_id="owner"))
    whole = await db.read(lambda c: sessions.load_session(c, "annabelle", "t1"))
    assert [record for _, record in whole] == [{"n": 1}, {"n": 2}, {"n": 3}]
    assert [record for _, record in await db.read(lambda c: sessions.load_session(c, "muse", "t1"))] == [{"n": 9}]
