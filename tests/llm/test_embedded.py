"""The model inside, with the weights that come with the install: a real load and a real answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import httpx2 as httpx
import psutil
import pytest
from pydantic_ai.messages import ModelMessage, ModelRequest, UserPromptPart

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.llm.backend import BackendAnswer, ModelQuestion
from annabelle.llm.embedded.engine import MAX_TOKENS, EmbeddedBackend, GgufEngine, fit_messages
from annabelle.llm.gguf_models import find_packaged_weights, find_weights
from annabelle.llm.service import ModelService
from annabelle.llm.token_estimate import estimate_tokens
from support.scripted_model.service_under_test import Book, ask, talk, tool

MakeService = Callable[..., ModelService]


def embedded(**fields: object) -> Settings:
    return Settings.model_validate({"thinker_llm_provider": "embedded", "embedded_threads": 1, **fields})


@pytest.mark.req("LLM-03", "LLM-07")
async def test_the_packaged_model_answers_offline_and_is_booked(make_service: MakeService, book: Book) -> None:
    service = make_service(embedded())
    outcome = await ask(service, "What is the capital of France?", temperature=0.2, max_tokens=40)
    assert outcome.text
    assert "<|" not in outcome.text
    (call,) = book.settled
    assert (call.provider, call.model, call.usage.cost_usd) == ("embedded", "smollm2-135m", 0.0)
    assert call.usage.input_tokens > 5
    assert 0 < call.usage.output_tokens <= 40
    again = await ask(service, "What is the capital of France?", max_tokens=10)
    assert again.done.usage.cached_tokens > 0


@pytest.mark.req("LLM-03")
async def test_the_settings_say_how_many_threads_compute(make_service: MakeService) -> None:
    async def count_threads(threads: int) -> int:
        model = str(find_packaged_weights())
        await ask(make_service(embedded(embedded_model=model, embedded_threads=threads)), "hello", max_tokens=2)
        return psutil.Process().num_threads()

    before, with_one, with_nine = [await count_threads(threads) for threads in (1, 1, 9)]
    # Eight more, give or take those that the event loop starts.
    assert with_nine - with_one >= with_one - before + 5


@pytest.mark.req("LLM-03", "LLM-08")
async def test_a_gguf_file_by_its_path_gets_tools_by_schema(make_service: MakeService) -> None:
    file = find_packaged_weights()
    assert file is not None
    service = make_service(embedded(embedded_model=str(file)))
    assert (await service.choose()).tool_mode == "schema"
    outcome = await ask(service, "Read a.txt", tools=[tool()], tool_choice="required", max_tokens=40)
    (call,) = outcome.done.response.tool_calls
    assert call.tool_name == "filer_read_file"
    assert isinstance(call.args_as_dict()["path"], str)


@pytest.mark.req("LLM-03")
@pytest.mark.incident("I-02")
async def test_the_engine_listens_on_loopback_only_and_asks_for_its_key(home: Home) -> None:
    weights = find_weights("", home)
    engine = GgufEngine(replace(weights, context=512))
    place = await engine.start()
    try:
        assert place.base_url.startswith("http://127.0.0.1:")
        body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
        async with httpx.AsyncClient() as client:
            refused = await client.post(f"{place.base_url}/chat/completions", json=body)
            assert refused.status_code == 401
            assert not refused.headers.get("access-control-allow-origin")
    finally:
        await engine.stop()
    async with httpx.AsyncClient() as client:
        with pytest.raises(httpx.ConnectError):
            await client.get(f"{place.base_url}/models")


@pytest.mark.req("LLM-03")
async def test_a_long_conversation_is_cut_until_it_fits(home: Home) -> None:
    weights = replace(find_weights("", home), context=256, threads=1)
    backend = EmbeddedBackend(weights, GgufEngine(weights), weights.sampling)
    history: list[ModelMessage] = talk("start", system="Ω∆ " * 40)  # three tokens a character: the estimate is wrong
    for number in range(30):
        history.append(ModelRequest(parts=[UserPromptPart(f"question {number} " * 10)]))
    try:
        events = [event async for event in backend.stream(ModelQuestion("smollm2", history, max_tokens=4))]
    finally:
        await backend.close()
    assert isinstance(events[-1], BackendAnswer)
    assert events[-1].response.usage.output_tokens > 0


@pytest.mark.req("LLM-03")
def test_cutting_keeps_the_system_prompt_and_the_last_question() -> None:
    history: list[ModelMessage] = talk("start")
    for number in range(50):
        history.append(ModelRequest(parts=[UserPromptPart(f"question {number} " * 40)]))
    cut = fit_messages(history, 500)
    assert estimate_tokens(cut) <= 500
    assert (cut[0], cut[-1]) == (history[0], history[-1])
    assert fit_messages(history[:2], MAX_TOKENS) == history[:2]


@pytest.mark.req("LLM-03")
async def test_a_damaged_model_file_is_a_sentence_and_not_a_crash(
    make_service: MakeService, tmp_path: Path, book: Book
) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + b"\0" * 1000)
    with pytest.raises(ConfigMistake, match="could not be loaded"):
        await ask(make_service(embedded(embedded_model=str(broken))), "hello")
    assert [call.outcome for call in book.settled] == ["error"]
