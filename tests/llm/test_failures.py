"""When a provider does not answer: the error says who acts next, and never shows a key."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

import pytest

from annabelle.core.errors import (
    AnnabelleError,
    ProviderDown,
    ProviderFailed,
    ProviderRateLimited,
    ProviderRefused,
)
from annabelle.llm import call
from annabelle.llm.service import ModelService
from annabelle.llm.types import ModelRequest, TextDelta
from support.scripted_model import Failure, Reply, Rule, ScriptedServer
from support.scripted_model.service_under_test import KEY, Book, ask, settings_for, talk
from support.timing import seconds

MakeService = Callable[..., ModelService]
both_protocols = pytest.mark.parametrize("provider", ["groq", "anthropic"])


def service_at(make: MakeService, provider: str, model: ScriptedServer, **fields: object) -> ModelService:
    return make(settings_for(provider, model.url if provider == "anthropic" else model.openai_url, **fields))


@pytest.mark.req("LLM-01", "LLM-09")
@both_protocols
@pytest.mark.parametrize(
    ("status", "kind", "retry"),
    [
        (400, ProviderRefused, "none"),
        (401, ProviderRefused, "none"),
        (403, ProviderRefused, "none"),
        (404, ProviderRefused, "none"),
        (429, ProviderRateLimited, "rate_limit"),
        (500, ProviderDown, "network"),
        (503, ProviderDown, "network"),
        (529, ProviderDown, "network"),
    ],
)
async def test_each_status_becomes_the_error_of_who_acts_next(
    provider: str,
    status: int,
    kind: type[AnnabelleError],
    retry: str,
    model: ScriptedServer,
    make_service: MakeService,
    book: Book,
) -> None:
    model.rules(Rule(reply=Reply.failing(status, f"no, {KEY} is wrong", retry_after=7)))
    with pytest.raises(kind) as caught:
        await ask(service_at(make_service, provider, model), "hello")
    assert caught.value.retry == retry
    assert KEY not in f"{caught.value.message} {caught.value.hint}"
    assert len(model.requests) == 1
    assert [(call.outcome, call.error_code) for call in book.settled] == [("error", caught.value.code)]
    assert book.settled[0].usage.cost_usd == 0.0


@pytest.mark.req("LLM-01")
@both_protocols
async def test_a_refused_key_names_its_variable(
    provider: str, model: ScriptedServer, make_service: MakeService
) -> None:
    model.rules(Rule(reply=Reply.failing(401)))
    with pytest.raises(ProviderRefused) as caught:
        await ask(service_at(make_service, provider, model), "hello")
    assert f"{provider.upper()}_API_KEY" in str(caught.value.hint)


@pytest.mark.req("LLM-01")
async def test_a_rate_limit_passes_on_the_wait_it_asks_for(model: ScriptedServer, make_service: MakeService) -> None:
    model.rules(Rule(reply=Reply.failing(429, retry_after=12.5)))
    with pytest.raises(ProviderRateLimited, match=r"12\.5 s"):
        await ask(service_at(make_service, "groq", model), "hello")


@pytest.mark.req("LLM-01")
async def test_a_model_ollama_lacks_is_answered_with_the_command_that_fetches_it(
    model: ScriptedServer, make_service: MakeService
) -> None:
    model.rules(Rule(reply=Reply.failing(404, 'model "llama3.2" not found, try pulling it first')))
    with pytest.raises(ProviderRefused) as caught:
        await ask(make_service(settings_for("ollama", model.url)), "hello")
    assert caught.value.hint == "Run: ollama pull llama3.2"


@pytest.mark.req("LLM-01")
@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [(429, {"code": "insufficient_quota"}, ProviderRefused), (400, {"code": "tool_use_failed"}, ProviderFailed)],
)
async def test_what_the_code_says_counts_more_than_the_status(
    status: int,
    body: dict[str, str],
    kind: type[AnnabelleError],
    model: ScriptedServer,
    make_service: MakeService,
) -> None:
    model.rules(Rule(reply=Reply(error=Failure(status=status, code=body["code"]))))
    with pytest.raises(kind):
        await ask(service_at(make_service, "groq", model), "hello")


@pytest.mark.req("LLM-09")
@both_protocols
@pytest.mark.parametrize("how", ["drop_after", "cut_after"])
async def test_half_a_stream_is_a_network_error_whose_tokens_are_booked(
    provider: str, how: str, model: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    model.rules(Rule(reply=Reply.model_validate({"text": "never whole " * 20, "chunks": 9, how: 5})))
    with pytest.raises(ProviderDown, match="broke off"):
        await ask(service_at(make_service, provider, model), "hello")
    (call,) = book.settled
    assert call.outcome == "error"
    assert call.usage.output_tokens > 5
    assert call.usage.input_tokens > 0


@pytest.mark.req("LLM-09")
@both_protocols
@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(text="abcdefghi", chunks=9, hang_after=4)])
async def test_a_call_that_hangs_ends_at_its_timeout(
    provider: str, reply: Reply, model: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    model.rules(Rule(reply=reply))
    with pytest.raises(ProviderDown, match=r"within 0\.6 s"):
        await ask(service_at(make_service, provider, model, llm_timeout_seconds=0.6), "hello")
    assert [call.outcome for call in book.settled] == ["error"]


@pytest.mark.req("LLM-09")
async def test_slow_chunks_do_not_stretch_the_timeout(model: ScriptedServer, make_service: MakeService) -> None:
    model.rules(Rule(reply=Reply(text="x" * 100, chunks=100, chunk_delay=0.1)))
    with pytest.raises(ProviderDown, match="did not answer within"):
        await ask(service_at(make_service, "groq", model, llm_timeout_seconds=0.6), "hello")


@pytest.mark.req("LLM-09")
async def test_a_model_call_may_take_90_seconds_and_a_summary_30(
    model: ScriptedServer, make_service: MakeService, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines: list[float] = []
    stream_until = call.stream_until

    def shortened(
        deadline: float, source: AsyncGenerator[object], late: Callable[[], Exception]
    ) -> AsyncGenerator[object]:
        deadlines.append(deadline - asyncio.get_running_loop().time())
        return stream_until(0, source, late)

    model.rules(Rule(reply=Reply(hang=True)))
    service = service_at(make_service, "groq", model)
    monkeypatch.setattr(call, "stream_until", shortened)
    limits = {"chat": 90, "thinking": 90, "summary": 30}
    for purpose, limit in limits.items():
        with pytest.raises(ProviderDown, match=f"within {limit} s"):
            await ask(service, "hello", purpose=purpose)
    assert deadlines == pytest.approx(list(limits.values()), abs=5)


@pytest.mark.req("LLM-09", "LLM-05")
async def test_summaries_have_a_timeout_of_their_own(model: ScriptedServer, make_service: MakeService) -> None:
    model.rules(Rule(reply=Reply(hang=True)))
    service = service_at(make_service, "groq", model, llm_summary_timeout_seconds=0.5)
    with pytest.raises(ProviderDown, match=r"0\.5 s"):
        await ask(service, "hello", purpose="summary")


@pytest.mark.req("LLM-01")
@pytest.mark.parametrize("provider", ["groq", "ollama", "anthropic"])
async def test_nobody_at_the_address_is_said_in_a_sentence(provider: str, make_service: MakeService) -> None:
    with ScriptedServer() as gone:
        url = gone.url
    with pytest.raises(ProviderDown, match="can not be reached"):
        await ask(make_service(settings_for(provider, url)), "hello")


@pytest.mark.req("LLM-01")
async def test_an_error_in_the_middle_of_a_stream_is_an_error(model: ScriptedServer, make_service: MakeService) -> None:
    model.rules(Rule(reply=Reply(text="abc", error_after=1, error=Failure(status=429, message="slow down"))))
    with pytest.raises(ProviderRateLimited):
        await ask(service_at(make_service, "groq", model), "hello")


@pytest.mark.req("CST-09")
@pytest.mark.incident("I-27")
@both_protocols
async def test_a_cancelled_turn_ends_the_call_and_books_what_it_used(
    provider: str, model: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    model.rules(Rule(reply=Reply(text="some words already " * 9, chunks=9, hang_after=5)))
    service = service_at(make_service, provider, model)
    heard = asyncio.Event()

    async def turn() -> None:
        async for event in service.request(ModelRequest(call_id="c1", messages=talk("hello"))):
            if isinstance(event, TextDelta):
                heard.set()

    task = asyncio.create_task(turn())
    async with asyncio.timeout(seconds(10)):
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    (call,) = book.settled
    assert (call.call_id, call.outcome) == ("c1", "cancelled")
    assert call.usage.output_tokens > 0


@pytest.mark.req("CST-09")
async def test_a_reader_that_stops_early_books_a_cancelled_call(
    model: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    service = service_at(make_service, "groq", model)
    async with aclosing(service.request(ModelRequest(call_id="c1", messages=talk("hello")))) as events:
        await anext(events)
    assert [call.outcome for call in book.settled] == ["cancelled"]
