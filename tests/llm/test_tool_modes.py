"""Models without function calling choose tools by constrained answers, and the rest of Annabelle sees no difference."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart

from annabelle.core.errors import ProviderRefused
from annabelle.llm.service import ModelService
from annabelle.llm.types import TextDelta
from support.scripted_model import Failure, Reply, Rule, ScriptedServer
from support.scripted_model.service_under_test import Book, Outcome, ask, settings_for, talk, tool

MakeService = Callable[..., ModelService]
READ, SEND = tool("filer_read_file"), tool("mail_send", to={"type": "string"})


def says(schema: str, value: object, **conditions: object) -> Rule:
    text = value if isinstance(value, str) else json.dumps(value)
    return Rule.model_validate({"schema_name": schema, "reply": Reply(text=text, input_tokens=10, output_tokens=5)}
                               | conditions)  # fmt: skip


def calls_in(outcome: Outcome) -> list[tuple[str, object]]:
    parts = outcome.done.response.parts
    return [(part.tool_name, part.args_as_dict()) for part in parts if isinstance(part, ToolCallPart)]


@pytest.fixture
def by_schema(model: ScriptedServer, make_service: MakeService) -> ModelService:
    return make_service(settings_for("ollama", model.url, model_tool_mode="schema"))


@pytest.mark.req("LLM-08")
async def test_a_tool_is_chosen_and_then_its_arguments_under_its_own_schema(
    model: ScriptedServer, by_schema: ModelService, book: Book
) -> None:
    model.rules(says("choose_tool", {"tool": "filer_read_file"}), says("tool_arguments", {"path": "a.txt"}))
    outcome = await ask(by_schema, "read a.txt", tools=[READ, SEND])
    assert calls_in(outcome) == [("filer_read_file", {"path": "a.txt"})]
    assert outcome.done.response.finish_reason == "tool_call"
    choosing, arguing = model.requests
    assert choosing.conversation.schema["properties"]["tool"]["enum"] == ["filer_read_file", "mail_send", "none"]
    assert arguing.conversation.schema == READ.input_schema
    assert all("tools" not in request.body for request in model.requests)
    assert [(call.usage.input_tokens, call.usage.output_tokens) for call in book.settled] == [(20, 10)]


@pytest.mark.req("LLM-08")
async def test_without_need_for_a_tool_the_answer_streams(model: ScriptedServer, by_schema: ModelService) -> None:
    model.rules(says("choose_tool", {"tool": "none"}), Rule(reply=Reply(text="Just talking.", chunks=4)))
    outcome = await ask(by_schema, "hello", tools=[READ])
    assert outcome.text == "Just talking."
    assert len([event for event in outcome.events if isinstance(event, TextDelta)]) > 1
    assert calls_in(outcome) == []


@pytest.mark.req("LLM-08")
async def test_the_tool_list_is_a_stable_prefix_of_every_question(
    model: ScriptedServer, by_schema: ModelService
) -> None:
    model.rules(says("choose_tool", {"tool": "filer_read_file"}), says("tool_arguments", {"path": "a"}))
    await ask(by_schema, "read a", tools=[READ, SEND])
    first, second = (request.body["messages"] for request in model.requests)
    assert first[0] == second[0]
    assert "- filer_read_file(path: string)" in first[0]["content"]
    assert first[0]["content"].startswith("You are Annabelle.")


@pytest.mark.req("LLM-08")
async def test_a_malformed_choice_is_asked_once_more(model: ScriptedServer, by_schema: ModelService) -> None:
    model.rules(
        says("choose_tool", "I would say filer!", times=1),
        says("choose_tool", 'Sure: ```json\n{"tool": "filer_read_file"}\n```'),
        says("tool_arguments", {"path": "b"}),
    )
    assert calls_in(await ask(by_schema, "read b", tools=[READ, SEND])) == [("filer_read_file", {"path": "b"})]


@pytest.mark.req("LLM-08")
@pytest.mark.parametrize("where", ["choose_tool", "tool_arguments"])
async def test_what_stays_malformed_ends_in_plain_words(
    where: str, model: ScriptedServer, by_schema: ModelService
) -> None:
    good = {"choose_tool": {"tool": "filer_read_file"}, "tool_arguments": {"path": "b"}}
    rules = [says(name, "gibberish" if name == where else value) for name, value in good.items()]
    model.rules(*rules, Rule(reply=Reply(text="I can not do that.")))
    outcome = await ask(by_schema, "read b", tools=[READ, SEND])
    assert (outcome.text, calls_in(outcome)) == ("I can not do that.", [])
    assert sum(request.conversation.schema_name == where for request in model.requests) == 2


@pytest.mark.req("LLM-08")
async def test_arguments_that_lack_a_required_field_are_not_passed_on(
    model: ScriptedServer, by_schema: ModelService
) -> None:
    model.rules(
        says("choose_tool", {"tool": "filer_read_file"}),
        says("tool_arguments", {"file": "b"}, times=1),
        says("tool_arguments", {"path": "b"}),
    )
    assert calls_in(await ask(by_schema, "read b", tools=[READ, SEND])) == [("filer_read_file", {"path": "b"})]


@pytest.mark.req("LLM-08")
async def test_a_forced_tool_is_not_chosen_but_filled_in(model: ScriptedServer, by_schema: ModelService) -> None:
    model.rules(says("tool_arguments", {"to": "ada"}))
    outcome = await ask(by_schema, "write", tools=[READ, SEND], tool_choice=("mail_send",))
    assert calls_in(outcome) == [("mail_send", {"to": "ada"})]
    assert len(model.requests) == 1


@pytest.mark.req("LLM-08")
@pytest.mark.parametrize(
    "refusal",
    [
        "registry.ollama.ai/gemma:2b does not support tools",
        "Tools are not supported by this model.",
        "Tool use is not supported for gemma:2b.",
    ],
)
async def test_a_server_that_refuses_tools_is_asked_by_schema_from_then_on(
    refusal: str, model: ScriptedServer, make_service: MakeService, book: Book
) -> None:
    model.rules(
        Rule(tools=True, reply=Reply.failing(400, refusal)),
        says("choose_tool", {"tool": "filer_read_file"}),
        says("tool_arguments", {"path": "c"}),
    )
    service = make_service(settings_for("ollama", model.url))
    assert (await service.choose()).tool_mode == "native"
    for _ in range(2):
        assert calls_in(await ask(service, "read c", tools=[READ, SEND])) == [("filer_read_file", {"path": "c"})]
    assert sum(bool(request.body.get("tools")) for request in model.requests) == 1
    choice = await service.choose()
    assert choice.tool_mode == "schema"
    assert "no function calling" in choice.explanation
    assert [call.outcome for call in book.settled] == ["error", "ok", "ok"]


@pytest.mark.req("LLM-08")
@pytest.mark.parametrize("mode", ["schema", "none"])
async def test_earlier_tool_calls_are_told_as_text(mode: str, model: ScriptedServer, make_service: MakeService) -> None:
    model.rules(says("choose_tool", {"tool": "none"}), Rule(reply=Reply(text="It says 42.")))
    service = make_service(settings_for("ollama", model.url, model_tool_mode=mode))
    history = [
        *talk("read a"),
        ModelResponse(parts=[ToolCallPart("filer_read_file", {"path": "a"}, tool_call_id="x")]),
        ModelRequest(parts=[ToolReturnPart("filer_read_file", "42", tool_call_id="x")]),
    ]
    assert (await ask(service, history, tools=[READ])).text == "It says 42."
    for request in model.requests:
        assert {message["role"] for message in request.body["messages"]} == {"system", "user", "assistant"}
        assert "tool_calls" not in str(request.body)
        assert "Result of filer_read_file:\\n42" in json.dumps(request.body)


@pytest.mark.req("LLM-08")
async def test_a_model_that_only_chats_never_hears_of_tools(model: ScriptedServer, make_service: MakeService) -> None:
    service = make_service(settings_for("ollama", model.url, model_tool_mode="none"))
    assert (await ask(service, "hello", tools=[READ])).text == "You said: hello"
    assert "filer_read_file" not in str(model.requests[0].body)


@pytest.mark.req("LLM-08")
async def test_an_error_while_choosing_is_an_error_of_the_call(
    model: ScriptedServer, by_schema: ModelService, book: Book
) -> None:
    model.rules(Rule(schema_name="choose", reply=Reply(error=Failure(status=401))))
    with pytest.raises(ProviderRefused):
        await ask(by_schema, "hello", tools=[READ])
    assert [call.outcome for call in book.settled] == ["error"]
