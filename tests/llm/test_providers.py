"""Every provider, reached by its URL alone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart, UserPromptPart

from annabelle.core.tools import ToolSpec
from annabelle.llm.service import ModelService
from annabelle.llm.types import TextDelta
from support.scripted_model import Call, Reply, Rule, ScriptedServer, plan_text
from support.scripted_model.service_under_test import KEY, ask, settings_for, talk, tool

PROVIDERS = ["groq", "openai", "openrouter", "ollama", "lmstudio", "compatible", "anthropic"]
MakeService = Callable[..., ModelService]
each_provider = pytest.mark.parametrize("provider", PROVIDERS)


def url_for(model: ScriptedServer, provider: str) -> str:
    return model.url if provider in ("anthropic", "ollama") else model.openai_url


@pytest.mark.req("LLM-01", "LLM-02", "LLM-04")
@each_provider
async def test_an_answer_streams_in_pieces_and_ends_whole(
    provider: str, model: ScriptedServer, make_service: MakeService
) -> None:
    model.rules(Rule(reply=Reply(text="Hello from far away.", chunks=4)))
    service = make_service(settings_for(provider, url_for(model, provider)))
    outcome = await ask(service, "hello")
    assert outcome.text == "Hello from far away."
    assert len([event for event in outcome.events if isinstance(event, TextDelta)]) > 1
    assert [part.content for part in outcome.done.response.parts if isinstance(part, TextPart)] == [outcome.text]
    assert outcome.done.response.finish_reason == "stop"


@pytest.mark.req("LLM-01")
@each_provider
async def test_tools_are_called_and_their_results_go_back(
    provider: str, model: ScriptedServer, make_service: MakeService
) -> None:
    service = make_service(settings_for(provider, url_for(model, provider)))
    messages = talk(plan_text([("filer_read_file", {"path": "a.txt"})], say="It holds {result}."))
    first = await ask(service, messages, tools=[tool()])
    (call,) = [part for part in first.done.response.parts if isinstance(part, ToolCallPart)]
    assert (call.tool_name, call.args_as_dict()) == ("filer_read_file", {"path": "a.txt"})
    assert first.done.response.finish_reason == "tool_call"
    back = ModelRequest(parts=[ToolReturnPart(call.tool_name, "forty-two", tool_call_id=call.tool_call_id)])
    second = await ask(service, [*messages, first.done.response, back], tools=[tool()])
    assert second.text == "It holds forty-two."


@pytest.mark.req("LLM-04")
@pytest.mark.parametrize("provider", ["groq", "openrouter", "anthropic"])
async def test_reasoning_streams_apart_from_the_answer(
    provider: str, model: ScriptedServer, make_service: MakeService
) -> None:
    model.rules(Rule(reply=Reply(think="Let me see.", text="Yes.")))
    outcome = await ask(make_service(settings_for(provider, url_for(model, provider))), "well?")
    assert (outcome.thought, outcome.text) == ("Let me see.", "Yes.")


@pytest.mark.req("LLM-04")
async def test_think_tags_of_local_models_are_reasoning_too(model: ScriptedServer, make_service: MakeService) -> None:
    model.rules(Rule(reply=Reply(text="<think>Hm, hm.</think>\n\nYes <think> stays.", chunks=20)))
    outcome = await ask(make_service(settings_for("ollama", model.url)), "well?")
    assert (outcome.thought, outcome.text) == ("Hm, hm.", "Yes <think> stays.")


@pytest.mark.req("LLM-01")
@pytest.mark.parametrize("provider", ["groq", "anthropic"])
async def test_several_calls_of_one_step_stay_apart(
    provider: str, model: ScriptedServer, make_service: MakeService
) -> None:
    calls = [Call(name="a_one", arguments={"path": "1"}), Call(name="a_two", arguments={"path": "2"})]
    model.rules(Rule(reply=Reply(text="Both.", tool_calls=calls)))
    outcome = await ask(
        make_service(settings_for(provider, url_for(model, provider))), "go", tools=[tool("a_one"), tool("a_two")]
    )
    found = [part for part in outcome.done.response.parts if isinstance(part, ToolCallPart)]
    assert [(part.tool_name, part.args_as_dict()) for part in found] == [
        ("a_one", {"path": "1"}),
        ("a_two", {"path": "2"}),
    ]
    assert len({part.tool_call_id for part in found}) == 2


@pytest.mark.req("LLM-01")
@pytest.mark.parametrize("provider", ["groq", "anthropic"])
async def test_the_key_travels_in_the_header_and_nowhere_else(
    provider: str, model: ScriptedServer, make_service: MakeService
) -> None:
    await ask(make_service(settings_for(provider, url_for(model, provider))), "hello")
    (request,) = model.requests
    assert KEY in request.headers["authorization"]
    assert KEY not in str(request.body)


@pytest.mark.req("LLM-01")
@pytest.mark.parametrize("provider", ["groq", "anthropic"])
async def test_a_forced_tool_is_forced_at_the_provider(
    provider: str, model: ScriptedServer, make_service: MakeService
) -> None:
    model.rules(Rule(reply=Reply(tool_calls=[Call(name="b_two", arguments={"path": "x"})])))
    service = make_service(settings_for(provider, url_for(model, provider)))
    await ask(service, "go", tools=[tool("a_one"), tool("b_two")], tool_choice=("b_two",))
    assert model.requests[0].conversation.tool_choice == "b_two"


@pytest.mark.req("LLM-01")
async def test_a_text_with_line_separators_arrives_unharmed(model: ScriptedServer, make_service: MakeService) -> None:
    text = "one\u2028two\x85three\n\nfour"
    model.rules(Rule(reply=Reply(text=text, raw_unicode=True)))
    assert (await ask(make_service(settings_for("groq", model.openai_url)), "hello")).text == text


@pytest.mark.req("LLM-01")
async def test_a_server_that_does_not_stream_is_understood(model: ScriptedServer, make_service: MakeService) -> None:
    model.rules(Rule(reply=Reply(text="All at once.", whole=True)))
    assert (await ask(make_service(settings_for("compatible", model.openai_url)), "hello")).text == "All at once."


@pytest.mark.req("LLM-01")
async def test_a_field_the_model_rejects_is_left_out_from_then_on(
    model: ScriptedServer, make_service: MakeService
) -> None:
    complaint = "Unsupported value: 'temperature' does not support 0.4 with this model."
    model.rules(Rule(times=1, reply=Reply.failing(400, complaint)))
    service = make_service(settings_for("compatible", model.openai_url))
    assert (await ask(service, "hello")).text == "You said: hello"
    await ask(service, "again")
    assert ["temperature" in request.body for request in model.requests] == [True, False, False]


@pytest.mark.req("LLM-01")
async def test_reasoning_models_of_openai_get_no_temperature(model: ScriptedServer, make_service: MakeService) -> None:
    await ask(make_service(settings_for("openai", model.openai_url)), "hello", max_tokens=50)
    body = model.requests[0].body
    assert body["model"] == "gpt-5-mini"
    assert "temperature" not in body
    assert body["max_completion_tokens"] == 50


@pytest.mark.req("LLM-01")
async def test_local_templates_get_one_system_message_and_alternating_roles(
    model: ScriptedServer, make_service: MakeService
) -> None:
    late = talk("second", system="It is noon.")
    messages = [*talk("first"), ModelResponse(parts=[TextPart("one")]), *late]
    await ask(make_service(settings_for("ollama", model.url)), messages)
    sent = model.requests[0].body["messages"]
    assert [message["role"] for message in sent] == ["system", "user", "assistant", "user"]
    assert "It is noon." in sent[3]["content"]
    assert sent[3]["content"].endswith("second")


@pytest.mark.req("LLM-01")
async def test_references_in_tool_schemas_are_inlined(model: ScriptedServer, make_service: MakeService) -> None:
    spec = ToolSpec(
        name="a_tool",
        server="a",
        original_name="tool",
        description="",
        input_schema={
            "type": "object",
            "properties": {"who": {"$ref": "#/$defs/Person"}},
            "$defs": {"Person": {"type": "object", "properties": {"friend": {"$ref": "#/$defs/Person"}}}},
        },
    )
    await ask(make_service(settings_for("groq", model.openai_url)), "hello", tools=[spec])
    sent = str(model.requests[0].body["tools"])
    assert "$ref" not in sent
    assert "friend" in sent


@pytest.mark.req("LLM-05")
async def test_each_purpose_may_have_its_own_model(model: ScriptedServer, make_service: MakeService) -> None:
    settings = settings_for(
        "groq",
        model.openai_url,
        llm_summary_model="cheap-one",
        llm_thinking_model="ollama:deep:70b",
        ollama_base_url=model.url,
    )
    service = make_service(settings)
    for purpose in ("chat", "summary", "thinking"):
        await ask(service, "hello", purpose=purpose)
    assert [request.body["model"] for request in model.requests] == ["llama-3.3-70b-versatile", "cheap-one", "deep:70b"]


@pytest.mark.req("LLM-02")
async def test_an_agent_may_have_its_own_provider_model_and_temperature(
    model: ScriptedServer, make_service: MakeService
) -> None:
    settings = settings_for("groq", model.openai_url, ollama_base_url=model.url)
    service = make_service(settings, provider="ollama", model="mistral", temperature=0.9)
    await ask(service, "hello")
    body = model.requests[0].body
    assert (body["model"], body["temperature"]) == ("mistral", 0.9)


@pytest.mark.req("LLM-01")
async def test_user_texts_in_pieces_are_joined_for_plain_servers(
    model: ScriptedServer, make_service: MakeService
) -> None:
    messages = [ModelRequest(parts=[UserPromptPart(["one", "two"])])]
    await ask(make_service(settings_for("lmstudio", model.openai_url)), messages)
    assert model.requests[0].body["messages"][0]["content"] == "one\n\ntwo"
