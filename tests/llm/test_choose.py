"""Which model answers when nobody says, and what is said when a choice can not work."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from annabelle.core.errors import ConfigMistake, ProviderDown
from annabelle.core.settings import Settings
from annabelle.llm.service import ModelService
from support.scripted_model import ScriptedServer
from support.scripted_model.service_under_test import KEY, ask

MakeService = Callable[..., ModelService]
NOWHERE = "http://127.0.0.1:9"  # the discard port: nobody listens


def quiet(**fields: object) -> Settings:
    """Settings of a machine where no local model server runs, unless a test says otherwise."""
    return Settings.model_validate({"ollama_base_url": NOWHERE, "lmstudio_base_url": f"{NOWHERE}/v1", **fields})


@pytest.fixture
def two_models() -> Iterator[ScriptedServer]:
    with ScriptedServer(models=["text-embedding-3", "mistral:latest", "llama3.2:latest"]) as server:
        yield server


@pytest.mark.req("LLM-01", "LLM-02")
async def test_groq_is_the_default_when_its_key_is_set(make_service: MakeService) -> None:
    choice = await make_service(quiet(groq_api_key=KEY, openai_api_key=KEY)).choose()
    assert (choice.provider, choice.model, choice.tool_mode) == ("groq", "llama-3.3-70b-versatile", "native")
    assert "GROQ_API_KEY is set" in choice.explanation
    assert KEY not in repr(choice)


@pytest.mark.req("LLM-02")
@pytest.mark.parametrize("provider", ["anthropic", "openai", "openrouter"])
async def test_any_other_key_alone_chooses_its_provider(provider: str, make_service: MakeService) -> None:
    choice = await make_service(quiet(**{f"{provider}_api_key": KEY})).choose()
    assert choice.provider == provider


@pytest.mark.req("LLM-02")
async def test_a_configured_provider_beats_a_key_and_the_agents_own_beats_both(make_service: MakeService) -> None:
    settings = quiet(groq_api_key=KEY, openai_api_key=KEY, thinker_llm_provider="openai", ollama_model="mistral")
    assert (await make_service(settings).choose()).provider == "openai"
    assert (await make_service(settings, provider="ollama").choose()).model == "mistral"


@pytest.mark.req("LLM-02")
async def test_a_compatible_address_alone_is_enough(two_models: ScriptedServer, make_service: MakeService) -> None:
    choice = await make_service(quiet(compatible_base_url=two_models.openai_url)).choose()
    assert (choice.provider, choice.model) == ("compatible", "mistral:latest")


@pytest.mark.req("LLM-02")
async def test_a_running_ollama_is_found_with_the_model_it_has(
    two_models: ScriptedServer, make_service: MakeService
) -> None:
    choice = await make_service(quiet(ollama_base_url=two_models.url)).choose()
    assert (choice.provider, choice.model) == ("ollama", "llama3.2:latest")
    other = await make_service(quiet(ollama_base_url=two_models.url, ollama_model="phi")).choose()
    assert other.model == "mistral:latest"


@pytest.mark.req("LLM-01")
async def test_the_model_of_lm_studio_is_found_out(two_models: ScriptedServer, make_service: MakeService) -> None:
    service = make_service(quiet(lmstudio_base_url=two_models.openai_url))
    choice = await service.choose()
    assert (choice.provider, choice.model) == ("lmstudio", "mistral:latest")
    assert (await ask(service, "hello")).text == "You said: hello"


@pytest.mark.req("LLM-03")
async def test_with_no_key_and_no_server_the_packaged_model_answers_and_says_what_it_is(
    make_service: MakeService,
) -> None:
    choice = await make_service(quiet()).choose()
    assert (choice.provider, choice.model, choice.tool_mode) == ("embedded", "smollm2-135m", "none")
    assert "very small" in choice.explanation
    for way in ("GROQ_API_KEY", "Ollama", "annabelle models pull"):
        assert way in choice.explanation


@pytest.mark.req("LLM-02")
@pytest.mark.parametrize("provider", ["groq", "anthropic", "openai", "openrouter"])
async def test_a_provider_without_its_key_names_the_variable(provider: str, make_service: MakeService) -> None:
    with pytest.raises(ConfigMistake) as caught:
        await make_service(quiet(thinker_llm_provider=provider)).choose()
    assert caught.value.field == f"{provider.upper()}_API_KEY"


@pytest.mark.req("LLM-02")
async def test_an_unknown_provider_is_answered_with_the_known_ones(make_service: MakeService) -> None:
    with pytest.raises(ConfigMistake, match="gorq") as caught:
        await make_service(quiet(thinker_llm_provider="gorq")).choose()
    assert "groq, anthropic" in str(caught.value.hint)


@pytest.mark.req("LLM-02")
async def test_a_compatible_provider_without_address_says_so(make_service: MakeService) -> None:
    with pytest.raises(ConfigMistake) as caught:
        await make_service(quiet(thinker_llm_provider="compatible")).choose()
    assert caught.value.field == "COMPATIBLE_BASE_URL"


@pytest.mark.req("LLM-01")
async def test_lm_studio_that_does_not_run_can_be_tried_again(make_service: MakeService) -> None:
    with pytest.raises(ProviderDown, match="LM Studio does not answer"):
        await make_service(quiet(thinker_llm_provider="lmstudio")).choose()


@pytest.mark.req("LLM-01")
async def test_lm_studio_without_a_loaded_model_says_so(make_service: MakeService) -> None:
    with ScriptedServer(models=[]) as empty, pytest.raises(ConfigMistake, match="no model loaded"):
        await make_service(quiet(thinker_llm_provider="lmstudio", lmstudio_base_url=empty.openai_url)).choose()


@pytest.mark.req("LLM-03")
async def test_an_embedded_model_that_was_never_pulled_names_the_command(make_service: MakeService) -> None:
    with pytest.raises(ConfigMistake) as caught:
        await make_service(quiet(embedded_model="qwen2.5-0.5b")).choose()
    assert caught.value.hint == "Run: annabelle models pull qwen2.5-0.5b"
