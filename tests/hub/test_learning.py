"""Facts are learnt once from a thread that has rested, whatever dies, and nothing from a bad answer (MEM-07)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field

import pytest

from annabelle.core.contract import ExtractBrief, ExtractResult, LearntFact, TidyBrief, TidyFactsResult
from annabelle.core.errors import AgentPaused, Unavailable
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.tools import CallContext
from annabelle.core.trace import TraceFile
from annabelle.core.trust import Provenance
from annabelle.durable.engine import Durable
from annabelle.hub.memory import fact_extraction
from annabelle.hub.memory.fact_extraction import (
    ExtractionRequest,
    FactExtractionWorkflow,
    backfill_tool,
    request_for_thread,
)
from annabelle.hub.memory.fact_tidier import FactTidier
from annabelle.hub.memory.memory_client import MemoryClient, MemoryOwner
from annabelle.store.database import sqlite_url
from hub.stand_in_memory import StandInMemory
from support.timing import seconds

FACT = "Ada lives in Lisbon."


@dataclass
class StandInThinking:
    """Gives these answers, in turn; the last one stays."""

    answers: list[ExtractResult | Exception]
    briefs: list[ExtractBrief] = field(default_factory=list)
    tidier: Callable[[TidyBrief], TidyFactsResult] | None = None

    async def extract(self, agent_id: str, brief: ExtractBrief) -> ExtractResult:
        self.briefs.append(brief)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def tidy(self, agent_id: str, brief: TidyBrief) -> TidyFactsResult:
        if self.tidier is None:
            raise AgentPaused("It is paused.")
        return self.tidier(brief)


def learnt(fact: str = FACT, trust: str = "trusted", conversation: int = 1) -> LearntFact:
    return LearntFact(
        fact=fact, category="background", confidence=0.9, conversation_id=conversation, quote="I live in Lisbon",
        trust=trust,
    )  # type: ignore[arg-type]  # fmt: skip


@pytest.fixture
def memory() -> StandInMemory:
    return StandInMemory()


async def told(memory: StandInMemory, *texts: str, user: str = "owner", thread: str = "thr_1") -> None:
    """What the memory has of a conversation."""
    for text in texts:
        number = len(memory.conversations) + 1
        context = CallContext(
            caller="hub", agent_id="annabelle", user_id=user, message_id=f"msg_{number}", provenance=Provenance()
        )
        arguments = {"session_id": thread, "user_message": text, "agent_response": "Noted.", "tools": []}
        await memory.call("memory_store_conversation", arguments, context)
    memory.calls.clear()


LONG = "I live in Lisbon, and have done so since the spring of last year."


async def _ready() -> None:
    pass


@pytest.fixture
async def open_flow(
    home: Home, memory: StandInMemory, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[..., object]]:
    """Starts the engine with the flow; may be called again after `close`, as a restarted hub does."""
    monkeypatch.setattr(fact_extraction, "FIRST_WAIT_SECONDS", 0.001)
    monkeypatch.setattr(fact_extraction, "LONGEST_WAIT_SECONDS", 0.001)
    opened: list[Durable] = []

    async def open_it(thinking: StandInThinking, **settings: float) -> tuple[FactExtractionWorkflow, Durable]:
        durable = Durable(name="test", executor_id="hub", database_url=sqlite_url(home.flows_file), schema="flows")
        traces = TraceFile(home.traces_file, "hub", Redactor())
        flow = FactExtractionWorkflow(
            durable=durable,
            memory=MemoryClient(memory),
            thinker=thinking,
            traces=traces,
            settings=Settings(**settings),
            ready=_ready,
        )  # type: ignore[arg-type]
        await durable.launch()
        opened.append(durable)
        return flow, durable

    yield open_it
    for durable in opened:
        await durable.close()


def of_ada() -> ExtractionRequest:
    return request_for_thread("thr_1", "owner", "annabelle", "msg_1")


@pytest.mark.req("MEM-07", "MEM-09", "TRU-03")
async def test_a_fact_is_learnt_with_its_words_its_message_and_its_trust(open_flow, memory: StandInMemory) -> None:
    await told(memory, LONG)
    await memory.call(
        "memory_store_fact",
        {"fact": "Ada likes tea."},
        CallContext(caller="hub", user_id="owner", agent_id="annabelle"),
    )
    thinking = StandInThinking([ExtractResult(facts=(learnt(), learnt("Ada may be a spy.", "untrusted")))])
    flow, _ = await open_flow(thinking)
    await flow.begin(of_ada())
    done = await flow.result("learn:msg_1", 10)
    assert [(fact.fact, fact.status) for fact in done.facts] == [(FACT, "stored"), ("Ada may be a spy.", "stored")]
    (brief,) = thinking.briefs
    assert [turn.user for turn in brief.turns] == [LONG]
    assert brief.known == ("Ada likes tea.",)
    assert (brief.max_facts, brief.min_confidence) == (5, 0.7)
    kept = memory.facts["owner", "annabelle", FACT]
    assert kept["source"] == "learnt from a conversation"
    assert kept["confidence"] == 0.9
    assert kept["origin"] == {
        "kind": "conversation", "conversation_id": 1, "message_id": "msg_1", "thread_id": "thr_1",
        "quote": "I live in Lisbon",
    }  # fmt: skip
    assert (kept["trust"], memory.facts["owner", "annabelle", "Ada may be a spy."]["trust"]) == ("trusted", "untrusted")
    assert all(row["read"] for row in memory.conversations.values())


@pytest.mark.req("MEM-07")
async def test_how_sure_a_fact_must_be_is_what_the_settings_say(open_flow, memory: StandInMemory) -> None:
    await told(memory, LONG)
    thinking = StandInThinking([ExtractResult()])
    flow, _ = await open_flow(thinking, fact_extraction_confidence=0.9)
    await flow.begin(of_ada())
    await flow.result("learn:msg_1", 10)
    assert [brief.min_confidence for brief in thinking.briefs] == [0.9]


@pytest.mark.req("MEM-07")
async def test_the_same_thread_at_rest_is_learnt_from_once(open_flow, memory: StandInMemory) -> None:
    await told(memory, LONG)
    thinking = StandInThinking([ExtractResult(facts=(learnt(),))])
    flow, _ = await open_flow(thinking)
    for _ in range(3):
        await flow.begin(of_ada())
        await flow.result("learn:msg_1", 10)
    assert len(thinking.briefs) == 1
    again = of_ada().model_copy(update={"learn_id": "learn:msg_2"})
    await flow.begin(again)
    assert (await flow.result("learn:msg_2", 10)).turns == 0
    assert len(thinking.briefs) == 1


@pytest.mark.req("MEM-07")
async def test_a_malformed_answer_stores_nothing_and_is_asked_for_twice_and_no_more(
    open_flow, memory: StandInMemory, home: Home
) -> None:
    await told(memory, LONG)
    thinking = StandInThinking([ExtractResult(refused="The model's answer is not a JSON array.")])
    flow, _ = await open_flow(thinking)
    await flow.begin(of_ada())
    done = await flow.result("learn:msg_1", 10)
    assert (done.facts, done.refused) == ((), "The model's answer is not a JSON array.")
    assert [brief.extraction_id for brief in thinking.briefs] == ["learn:msg_1:1.1", "learn:msg_1:1.2"]
    assert memory.facts == {}
    assert all(row["read"] for row in memory.conversations.values())
    traced = [json.loads(line) for line in home.traces_file.read_text().splitlines()]
    assert traced[-1]["event"] == "facts.learnt"
    assert traced[-1]["data"]["refused"] == "The model's answer is not a JSON array."


@pytest.mark.req("MEM-07")
async def test_a_second_answer_that_is_good_counts(open_flow, memory: StandInMemory) -> None:
    await told(memory, LONG)
    thinking = StandInThinking([ExtractResult(refused="no"), ExtractResult(facts=(learnt(),))])
    flow, _ = await open_flow(thinking)
    await flow.begin(of_ada())
    assert [fact.fact for fact in (await flow.result("learn:msg_1", 10)).facts] == [FACT]


@pytest.mark.req("MEM-07")
@pytest.mark.parametrize(
    "answer", [AgentPaused("It is paused."), ExtractResult(refused="too small", unfit=True)], ids=["paused", "unfit"]
)
async def test_who_may_not_or_can_not_be_asked_marks_nothing_as_read(open_flow, memory: StandInMemory, answer) -> None:
    await told(memory, LONG)
    flow, _ = await open_flow(StandInThinking([answer]))
    await flow.begin(of_ada())
    done = await flow.result("learn:msg_1", 10)
    assert (done.turns, done.facts) == (0, ())
    assert done.refused
    assert not any(row["read"] for row in memory.conversations.values())


@pytest.mark.req("MEM-07")
async def test_a_few_words_are_left_for_the_next_time(open_flow, memory: StandInMemory) -> None:
    await told(memory, "hello", "thanks!")
    thinking = StandInThinking([ExtractResult()])
    flow, _ = await open_flow(thinking)
    await flow.begin(of_ada())
    assert (await flow.result("learn:msg_1", 10)).turns == 0
    assert thinking.briefs == []
    assert not any(row["read"] for row in memory.conversations.values())


@pytest.mark.req("MEM-07")
async def test_a_memory_or_thinker_that_is_away_for_a_while_only_delays_it(open_flow, memory: StandInMemory) -> None:
    await told(memory, LONG)
    memory.away = 2
    flow, _ = await open_flow(StandInThinking([Unavailable("gone"), ExtractResult(facts=(learnt(),))]))
    await flow.begin(of_ada())
    assert [fact.fact for fact in (await flow.result("learn:msg_1", 10)).facts] == [FACT]


@pytest.mark.req("MEM-07")
async def test_who_waits_is_told_at_once_that_memory_is_away(open_flow, memory: StandInMemory) -> None:
    memory.away = 100
    flow, _ = await open_flow(StandInThinking([ExtractResult()]))
    wanted = ExtractionRequest(learn_id="learn:now", user_id="owner", agent_id="annabelle", trace_id="tr_1", tries=1)
    await flow.begin(wanted)
    with pytest.raises(Unavailable):
        await flow.result("learn:now", 10)
    assert len(memory.calls) == 1


@pytest.mark.req("MEM-05", "MEM-07")
async def test_a_fact_the_memory_refuses_is_left_out_and_its_words_are_nowhere(
    open_flow, memory: StandInMemory, home: Home
) -> None:
    await told(memory, LONG)
    memory.refuses = "hunter2"
    found = (learnt("Her password is hunter2."), learnt())
    flow, _ = await open_flow(StandInThinking([ExtractResult(facts=found)]))
    await flow.begin(of_ada())
    assert [fact.fact for fact in (await flow.result("learn:msg_1", 10)).facts] == [FACT]
    assert "hunter2" not in home.traces_file.read_text()
    assert "facts.refused" in home.traces_file.read_text()


@pytest.mark.req("MEM-07", "DUR-02")
async def test_a_hub_that_dies_between_asking_and_storing_asks_no_second_time(
    open_flow, memory: StandInMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is closed while the first fact is being stored, and another one goes on."""
    await told(memory, LONG)
    reached = asyncio.Event()

    async def hangs(name: str, arguments, context):
        if name == "memory_store_fact":
            reached.set()
            await asyncio.Event().wait()
        return await StandInMemory.call(memory, name, arguments, context)

    monkeypatch.setattr(memory, "call", hangs)
    thinking = StandInThinking([ExtractResult(facts=(learnt(), learnt("Ada has a cat.")))])
    flow, durable = await open_flow(thinking)
    await flow.begin(of_ada())
    await asyncio.wait_for(reached.wait(), seconds(10))
    await durable.close()
    monkeypatch.undo()
    assert memory.facts == {}
    flow, _ = await open_flow(thinking)
    done = await flow.result("learn:msg_1", 20)
    assert [fact.fact for fact in done.facts] == [FACT, "Ada has a cat."]
    assert len(thinking.briefs) == 1
    assert len(memory.facts) == 2


@pytest.mark.req("MEM-07")
@pytest.mark.incident("I-30")
async def test_learning_on_request_reads_all_threads_of_one_owner_in_batches(open_flow, memory: StandInMemory) -> None:
    for number in range(12):
        await told(memory, f"{LONG} {number}", thread=f"thr_{number}")
    await told(memory, "another person's words, which are theirs alone and nobody else's", user="bob")
    thinking = StandInThinking([ExtractResult()])
    flow, _ = await open_flow(thinking)
    wanted = ExtractionRequest(learn_id="learn:all", user_id="owner", agent_id="annabelle", trace_id="tr_1", limit=50)
    await flow.begin(wanted)
    assert (await flow.result("learn:all", 10)).turns == 12
    assert [len(brief.turns) for brief in thinking.briefs] == [10, 2]
    assert "another person" not in str(thinking.briefs)


@pytest.mark.req("TRU-03")
@pytest.mark.parametrize("trust", ["trusted", "untrusted"])
async def test_an_agent_is_told_how_far_to_trust_what_was_learnt(open_flow, memory: StandInMemory, trust: str) -> None:
    await told(memory, LONG)
    flow, _ = await open_flow(StandInThinking([ExtractResult(facts=(learnt(trust=trust),))]))
    tool = backfill_tool(flow, agents=None)  # type: ignore[arg-type]  # asked for other agents only
    context = CallContext(caller="agent", agent_id="annabelle", user_id="owner", message_id="msg_9")
    result = await tool.call(tool.spec(), {}, context)
    assert FACT in result.text
    assert (result.trust, (result.structured or {})["trust"]) == (trust, trust)


PLAN = {
    "facts": [
        {"fact_id": n, "fact": f"fact {n}", "category": "background", "confidence": 1.0, "trust": "trusted",
         "updated_at": "2026-01-01T00:00:00Z"}
        for n in (1, 2, 3)
    ],
    "actions": [{"kind": "delete", "fact_ids": [3], "reason": "the rules say so"}],
}  # fmt: skip
OWNED = MemoryOwner("owner", "annabelle")


@pytest.mark.req("MEM-07")
async def test_the_model_plans_and_what_it_says_of_unknown_facts_is_left_out(memory: StandInMemory) -> None:
    memory.plan = PLAN
    actions = [
        {"kind": "merge", "fact_ids": (1, 2), "fact": "facts 1 and 2"},
        {"kind": "delete", "fact_ids": (2, 99)},
    ]
    thinking = StandInThinking([], tidier=lambda _brief: TidyFactsResult.model_validate({"actions": actions}))
    tidying = FactTidier(MemoryClient(memory), thinking)  # type: ignore[arg-type]
    plan = await tidying.plan(OWNED, None, 100)
    assert [(action.kind, action.fact_ids) for action in plan.actions] == [("merge", (1, 2))]
    assert (plan.planned_by, plan.refused) == ("model", None)
    assert plan.lines() == ["merge “fact 1”, “fact 2” into “facts 1 and 2”"]
    assert memory.applied == []
    assert (await tidying.apply(OWNED, plan.actions, plan.planned_by)).change_id == 1
    assert memory.applied[0]["planned_by"] == "model"


@pytest.mark.req("MEM-07")
@pytest.mark.parametrize("tidier", [None, lambda _brief: TidyFactsResult(refused="no JSON")], ids=["paused", "refused"])
async def test_where_the_model_can_not_plan_the_rules_do(memory: StandInMemory, tidier) -> None:
    memory.plan = PLAN
    tidying = FactTidier(MemoryClient(memory), StandInThinking([], tidier=tidier))  # type: ignore[arg-type]
    plan = await tidying.plan(OWNED, None, 100)
    assert [(action.kind, action.fact_ids) for action in plan.actions] == [("delete", (3,))]
    assert plan.planned_by == "rules"
    assert plan.refused
