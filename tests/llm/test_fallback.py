"""When a model is down another one answers, in the same request, and never without saying so."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from annabelle.core.contract import AgentProfile
from annabelle.core.errors import ConfigMistake, ProviderDown, ProviderRefused, ProviderTrouble
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile, read_trace
from annabelle.llm.service import ModelService
from annabelle.llm.types import Completed, FallbackUsed, ModelRequest
from support.scripted_model import Reply, Rule, ScriptedServer
from support.scripted_model.service_under_test import KEY, Book, Outcome, ask, settings_for, talk

MakeService = Callable[..., ModelService]
Timed = Callable[[Settings], tuple[ModelService, "Clock"]]
DEAD = "http://127.0.0.1:9/v1"  # the discard port: nobody listens


@pytest.fixture
def other() -> Iterator[ScriptedServer]:
    """The one that stands in."""
    with ScriptedServer() as server:
        yield server


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
async def timed(home: Home, book: Book) -> AsyncIterator[Timed]:
    """Makes services whose breakers go by a clock of the test's."""
    made: list[ModelService] = []

    def make(settings: Settings) -> tuple[ModelService, Clock]:
        clock = Clock()
        made.append(ModelService(settings, home, book, AgentProfile(agent_id="annabelle"), clock=clock))
        return made[-1], clock

    yield make
    for service in made:
        await service.close()


def two(first: str, second: ScriptedServer, **fields: Any) -> Settings:
    """Groq first, then LM Studio; the breaker of neither opens unless a test says so."""
    fields.setdefault("llm_fallbacks", "lmstudio:spare")
    fields.setdefault("llm_breaker_errors", 100)
    fields.setdefault("llm_spacing_seconds", 0)
    return settings_for("groq", first, lmstudio_base_url=second.openai_url, **fields)


def switched(outcome: Outcome) -> list[FallbackUsed]:
    return [event for event in outcome.events if isinstance(event, FallbackUsed)]


@pytest.mark.req("LLM-06")
@pytest.mark.incident("I-29")
@pytest.mark.parametrize("status", [429, 500, 503, 401, 403, 402])
async def test_a_provider_that_is_down_limits_us_or_refuses_the_key_is_stood_in_for_and_it_is_told(
    status: int, model: ScriptedServer, other: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    model.rules(Rule(reply=Reply.failing(status, f"no, {KEY}")))
    outcome = await ask(make_service(two(model.openai_url, other)), "hello")
    assert outcome.text == "You said: hello"
    (fell,) = switched(outcome)
    assert (fell.failed and fell.failed.provider, fell.answering.provider, fell.answering.model) == (
        "groq",
        "lmstudio",
        "spare",
    )
    assert fell.sentence.endswith("So spare (lmstudio) answers.")
    assert KEY not in fell.sentence
    assert [(call.provider, call.model, call.outcome) for call in book.settled] == [
        ("groq", "llama-3.3-70b-versatile", "error"),
        ("lmstudio", "spare", "ok"),
    ]
    assert len({call.call_id for call in book.settled}) == 2
    assert outcome.done.call == book.settled[1]


@pytest.mark.req("LLM-06")
@pytest.mark.parametrize("spare", ["groq:spare", "lmstudio:llama-3.3-70b-versatile"])
async def test_another_model_of_the_same_provider_and_the_same_model_at_another_can_stand_in(
    spare: str, model: ScriptedServer, other: ScriptedServer, make_service: MakeService
) -> None:
    model.rules(Rule(model="llama-3.3-70b-versatile", reply=Reply.failing(503)))
    call = (await ask(make_service(two(model.openai_url, other, llm_fallbacks=spare)), "hello")).done.call
    assert f"{call.provider}:{call.model}" == spare


@pytest.mark.req("LLM-06")
async def test_the_third_model_answers_when_the_first_two_fail(
    model: ScriptedServer, other: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    model.rules(Rule(reply=Reply.failing(503)))
    settings = two(DEAD, model, llm_fallbacks="lmstudio:spare, compatible:last", compatible_base_url=other.openai_url)
    assert (await ask(make_service(settings), "hello")).text == "You said: hello"
    assert [(call.provider, call.outcome) for call in book.settled] == [
        ("groq", "error"),
        ("lmstudio", "error"),
        ("compatible", "ok"),
    ]


@pytest.mark.req("LLM-06")
async def test_a_provider_that_can_not_be_reached_or_takes_too_long_is_stood_in_for(
    model: ScriptedServer, other: ScriptedServer, make_service: MakeService
) -> None:
    assert (await ask(make_service(two(DEAD, other)), "hello")).text == "You said: hello"
    model.rules(Rule(reply=Reply(hang=True)))
    outcome = await ask(make_service(two(model.openai_url, other, llm_timeout_seconds=0.3)), "hello")
    assert outcome.text == "You said: hello"
    assert "did not answer within 0.3 s" in switched(outcome)[0].reason


@pytest.mark.req("LLM-06")
async def test_a_local_server_that_can_not_even_say_its_model_is_stood_in_for(
    other: ScriptedServer, make_service: MakeService
) -> None:
    settings = settings_for("lmstudio", DEAD, compatible_base_url=other.openai_url, llm_fallbacks="compatible:spare")
    service = make_service(settings)
    assert (await service.choose()).model == "spare"
    outcome = await ask(service, "hello")
    assert (outcome.text, switched(outcome)[0].answering.model) == ("You said: hello", "spare")


@pytest.mark.req("LLM-06")
@pytest.mark.incident("I-29")
@pytest.mark.parametrize("status", [400, 404])
async def test_a_request_that_is_wrong_is_not_carried_to_another_provider(
    status: int, model: ScriptedServer, other: ScriptedServer, make_service: MakeService
) -> None:
    model.rules(Rule(reply=Reply.failing(status)))
    with pytest.raises(ProviderRefused):
        await ask(make_service(two(model.openai_url, other)), "hello")
    assert other.requests == []


@pytest.mark.req("LLM-06", "CST-10")
async def test_when_none_answers_each_was_asked_once_and_the_error_names_them(
    model: ScriptedServer, other: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    model.rules(Rule(reply=Reply.failing(503)))
    other.rules(Rule(reply=Reply.failing(401)))
    service = make_service(two(model.openai_url, other))
    with pytest.raises(ProviderTrouble, match="LM Studio") as caught:
        await ask(service, "hello")
    # The one that may work later decides whether it is tried again.
    assert (type(caught.value), caught.value.retry) == (ProviderDown, "network")
    assert (len(model.requests), len(other.requests), len(book.reserved)) == (1, 1, 2)


@pytest.mark.req("LLM-06", "CST-06")
async def test_an_open_breaker_spares_the_call_and_the_first_provider_comes_back_when_it_works(
    model: ScriptedServer, other: ScriptedServer, timed: Timed
) -> None:
    model.rules(Rule(reply=Reply.failing(503), times=2))
    service, clock = timed(two(model.openai_url, other, llm_breaker_errors=2))
    for _ in range(4):
        assert len(switched(await ask(service, "hello"))) == 1
    assert len(model.requests) == 2
    assert [(one.provider, one.state) for one in service.health()] == [("groq", "open"), ("lmstudio", "ok")]
    clock.now += 60
    outcome = await ask(service, "hello")
    assert (outcome.done.call.provider, switched(outcome)) == ("groq", [])
    assert service.health()[0].state == "degraded"  # one of two errors is left: a success takes one away


@pytest.mark.req("CST-06", "DUR-05")
async def test_an_open_breaker_says_when_the_next_try_is_possible_unless_another_provider_answers(
    model: ScriptedServer, other: ScriptedServer, timed: Timed
) -> None:
    model.rules(Rule(reply=Reply.failing(503)))
    service, clock = timed(settings_for("groq", model.openai_url, llm_breaker_errors=2, llm_spacing_seconds=0))
    waits: list[float | None] = []
    for seconds in (0, 20, 40, 0):
        with pytest.raises(ProviderDown) as caught:
            await ask(service, "hello")
        waits.append(caught.value.next_try)
        clock.now += seconds
    # Open after the second error, refused twenty seconds later, and tried again, in vain, when its time has come.
    assert waits == [None, 60, 40, 60]
    assert len(model.requests) == 3
    other.rules(Rule(reply=Reply.failing(503)))
    chained, _ = timed(two(model.openai_url, other, llm_breaker_errors=2))
    with pytest.raises(ProviderDown) as caught:
        await ask(chained, "hello")
    assert caught.value.next_try is None


@pytest.mark.req("CST-06")
async def test_while_one_call_tries_an_open_provider_the_others_are_answered_by_the_next(
    model: ScriptedServer, other: ScriptedServer, timed: Timed
) -> None:
    model.rules(Rule(reply=Reply.failing(503), times=1), Rule(reply=Reply(text="back", delay=1.0)))
    service, clock = timed(two(model.openai_url, other, llm_breaker_errors=1))
    await ask(service, "hello")
    clock.now += 60
    outcomes = await asyncio.gather(*(ask(service, f"hello {number}") for number in range(5)))
    assert sorted(outcome.done.call.provider for outcome in outcomes) == ["groq", *["lmstudio"] * 4]


@pytest.mark.req("LLM-06")
async def test_an_answer_that_breaks_off_is_begun_anew_by_the_other_one_at_the_next_try(
    model: ScriptedServer, other: ScriptedServer, make_service: MakeService
) -> None:
    model.rules(Rule(reply=Reply(text="half an answer", drop_after=2)))
    service = make_service(two(model.openai_url, other))
    seen: list[str] = []

    async def read() -> None:
        first = ModelRequest(call_id="m:1:m1", messages=talk("hello"), message_id="m")
        async with aclosing(service.request(first)) as events:
            async for event in events:
                seen.append(type(event).__name__)

    with pytest.raises(ProviderDown):
        await read()
    assert seen == ["TextDelta", "TextDelta"]
    outcome = await ask(service, "hello", message_id="m")
    assert (outcome.text, len(switched(outcome))) == ("You said: hello", 1)
    assert len(model.requests) == 1


@pytest.mark.req("LLM-06")
async def test_no_fallback_costs_nothing_and_changes_nothing(
    model: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    model.rules(Rule(reply=Reply.failing(503)))
    with pytest.raises(ProviderDown, match=r"^Groq has a problem of its own \(status 503\)\.[^.]*$"):
        await ask(make_service(settings_for("groq", model.openai_url)), "hello")
    assert len(book.settled) == 1


@pytest.mark.req("LLM-06")
@pytest.mark.incident("I-29")
async def test_each_switch_and_each_change_of_health_is_in_the_trace(
    home: Home, model: ScriptedServer, other: ScriptedServer, book: Book
) -> None:
    model.rules(Rule(reply=Reply.failing(503)))
    trace = TraceFile(home.traces_file, "thinker", Redactor())
    service = ModelService(two(model.openai_url, other), home, book, AgentProfile(agent_id="annabelle"), trace)
    trace_id = new_id("tr")
    await ask(service, "hello", trace_id=trace_id)
    await service.close()
    (line,) = [line for line in read_trace(home.traces_file, trace_id) if line["event"] == "model.fallback"]
    data = line["data"]
    assert isinstance(data, dict)
    assert (data["from"], data["to"]) == ("groq:llama-3.3-70b-versatile", "lmstudio:spare")
    assert "status 503" in data["reason"]
    assert '"provider.health"' in home.traces_file.read_text()


@pytest.mark.req("CST-10")
async def test_a_call_beside_the_conversation_is_in_the_trace_of_its_turn(
    home: Home, model: ScriptedServer, other: ScriptedServer, book: Book
) -> None:
    trace, trace_id = TraceFile(home.traces_file, "thinker", Redactor()), new_id("tr")
    service = ModelService(two(model.openai_url, other), home, book, AgentProfile(agent_id="annabelle"), trace)
    await ask(service, "hello", trace_id=trace_id)
    await ask(service, "sum it up", trace_id=trace_id, purpose="summary")
    await service.close()
    (line,) = [line for line in read_trace(home.traces_file, trace_id) if line["event"] == "model.called_aside"]
    data = line["data"]
    assert isinstance(data, dict)
    assert (data["purpose"], data["input_tokens"] > 0) == ("summary", True)


@pytest.mark.req("LLM-06")
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("ollama:llama3.2, gorq:llama", "gorq:llama"),
        ("llama3.2", "llama3.2"),
        ("ollama:", "ollama:"),
        ("openai:gpt-5-mini", "OPENAI_API_KEY"),
        ("compatible:some", "its address is not set"),
        ("embedded:nobody-knows", "embedded:nobody-knows"),
    ],
)
async def test_a_bad_entry_is_one_clear_mistake_at_the_start(entry: str, said: str, make_service: MakeService) -> None:
    with pytest.raises(ConfigMistake, match=said) as caught:
        make_service(settings_for("groq", DEAD, llm_fallbacks=entry))
    assert caught.value.field == "LLM_FALLBACKS"
    assert "LLM_FALLBACKS names" in caught.value.message


@pytest.mark.req("LLM-05")
async def test_each_purpose_has_its_model_and_the_agents_own_for_thinking_beats_the_setting(
    model: ScriptedServer, make_service: MakeService
) -> None:
    settings = settings_for(
        "groq", model.openai_url, llm_summary_model="small", llm_thinking_model="ollama:thoughtful",
        ollama_base_url=model.url, llm_spacing_seconds=0,
    )  # fmt: skip
    service = make_service(settings)
    for purpose in ("chat", "summary", "thinking"):
        await ask(service, "hello", purpose=purpose)
    assert [request.body["model"] for request in model.requests] == ["llama-3.3-70b-versatile", "small", "thoughtful"]
    own = make_service(settings, thinking={"model": "groq:deep"})
    choice = await own.choose("thinking")
    assert (choice.provider, choice.model) == ("groq", "deep")
    assert "agent annabelle" in choice.explanation
    assert (await own.choose("summary")).model == "small"


@pytest.mark.req("CST-10")
@pytest.mark.parametrize(("provider", "field"), [("groq", "max_tokens"), ("openai", "max_completion_tokens"),
    ("anthropic", "max_tokens"), ("ollama", "max_tokens"), ("compatible", "max_tokens")])  # fmt: skip
async def test_every_call_is_bounded_in_its_answer_also_when_nobody_says_how(
    provider: str, field: str, model: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    url = model.url if provider == "anthropic" else model.openai_url
    service = make_service(settings_for(provider, url, llm_max_output_tokens=777, llm_spacing_seconds=0))
    outcome = await ask(service, "hello")
    assert isinstance(outcome.events[-1], Completed)
    await ask(service, "hello", max_tokens=300)
    assert [request.body[field] for request in model.requests] == [777, 300]
    assert [reserve.max_output_tokens for reserve in book.reserved] == [777, 300]
