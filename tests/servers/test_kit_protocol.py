"""What a client sees of a server made of the kit, in both protocol eras."""

from __future__ import annotations

import logging

import anyio
import pytest
from mcp.server.lowlevel import Server
from mcp_types.version import LATEST_MODERN_VERSION

from annabelle.core.ids import new_id
from annabelle.servers.kit.server import MethodRegistry
from servers.sample_server import sample
from servers.speaking import Connect


@pytest.mark.req("SRV-ALL")
async def test_tools_are_listed_with_schemas_and_annotations(in_memory: Connect) -> None:
    async with in_memory(sample()) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    echo = tools["echo"]
    assert echo.description == "Say it back."
    assert echo.input_schema["properties"]["text"]["description"] == "Any text"
    assert echo.output_schema is not None
    assert echo.output_schema["required"] == ["said"]
    annotations = echo.annotations
    assert annotations is not None
    assert (annotations.read_only_hint, annotations.destructive_hint) == (True, False)
    assert (annotations.idempotent_hint, annotations.open_world_hint) == (True, False)


@pytest.mark.req("SRV-ALL")
async def test_a_result_has_structure_and_text(in_memory: Connect) -> None:
    async with in_memory(sample()) as client:
        result = await client.call_tool("echo", {"text": "grüße"})
    assert not result.is_error
    assert result.structured_content == {"said": "grüße"}
    assert result.content[0].text == '{"said":"grüße"}'


@pytest.mark.req("SRV-ALL")
async def test_an_error_carries_code_hint_and_field(in_memory: Connect) -> None:
    trace = new_id("tr")
    async with in_memory(sample()) as client:
        result = await client.call_tool("refuse", {}, meta={"annabelle": {"trace_id": trace}})
    assert result.is_error
    assert result.content[0].text == "Not today. Try tomorrow."
    assert result.structured_content == {
        "error": {
            "code": "not_allowed",
            "message": "Not today.",
            "hint": "Try tomorrow.",
            "field": "day",
            "trace_id": trace,
        }
    }


@pytest.mark.req("SRV-ALL")
async def test_an_unexpected_failure_tells_the_log_and_not_the_caller(
    in_memory: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_memory(sample()) as client:
        with caplog.at_level(logging.ERROR):
            result = await client.call_tool("break_down", {})
        again = await client.call_tool("echo", {})
    assert result.is_error
    assert result.structured_content["error"]["code"] == "internal_error"
    assert "secret" not in str(result)
    assert "sk-ant" not in str(result)
    assert "Traceback" in caplog.text
    assert not again.is_error, "the server goes on"


@pytest.mark.req("SRV-ALL")
@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("echo", {"text": 5}, "invalid_arguments"),
        ("echo", {"words": "x"}, "invalid_arguments"),
        ("eccho", {}, "unknown_tool"),
        ("much", {"count": 20_000}, "too_large"),
    ],
)
async def test_a_mistake_of_the_caller_is_an_answer(
    in_memory: Connect, tool: str, arguments: dict[str, object], code: str
) -> None:
    async with in_memory(sample()) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error
    assert result.structured_content["error"]["code"] == code


async def test_an_unknown_tool_names_the_closest(in_memory: Connect) -> None:
    async with in_memory(sample()) as client:
        result = await client.call_tool("eccho", {})
    assert "Did you mean echo?" in result.content[0].text


async def test_the_tool_knows_who_calls(in_memory: Connect) -> None:
    facts = {"agent_id": "annabelle", "user_id": "owner", "trace_id": new_id("tr"), "chat_id": "c", "call_id": "m:1:0"}
    async with in_memory(sample()) as client:
        result = await client.call_tool("whoami", {}, meta={"annabelle": facts})
    assert result.structured_content == facts


@pytest.mark.req("MEM-09")
async def test_the_tool_knows_where_a_call_comes_from_and_how_far_it_may_be_trusted(in_memory: Connect) -> None:
    facts = {"caller": "agent", "thread_id": "thr_1", "channel": "cli", "trust": "untrusted", "origins": ["web_fetch"]}
    async with in_memory(sample()) as client:
        result = await client.call_tool("whence", {}, meta={"annabelle": facts})
        odd = await client.call_tool(
            "whence", {}, meta={"annabelle": {"caller": "root", "trust": "very", "origins": "all", "channel": 5}}
        )
        silent = await client.call_tool("whence", {})
    assert result.structured_content == facts
    nothing = {"caller": None, "thread_id": None, "channel": None, "trust": None, "origins": []}
    assert odd.structured_content == nothing | {"trust": "untrusted"}, "an unknown label is the careful one"
    assert silent.structured_content == nothing


async def test_a_tool_says_for_whom_it_is_and_most_say_nothing(in_memory: Connect) -> None:
    async with in_memory(sample()) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["whence"].meta == {"annabelle": {"audience": "people"}}
    assert tools["echo"].meta is None


async def test_two_calls_at_once_never_see_each_others_caller(in_memory: Connect) -> None:
    seen: dict[str, object] = {}

    async with in_memory(sample()) as client:

        async def ask(user: str) -> None:
            result = await client.call_tool("whoami", {}, meta={"annabelle": {"user_id": user}})
            seen[user] = result.structured_content["user_id"]

        async with anyio.create_task_group() as tg:
            for number in range(20):
                tg.start_soon(ask, f"user-{number}")
    assert seen == {f"user-{number}": f"user-{number}" for number in range(20)}


@pytest.mark.parametrize("meta", [{"annabelle": "text"}, {"annabelle": {"user_id": 5, "trace_id": "../x"}}, {}])
async def test_a_malformed_context_is_left_out(in_memory: Connect, meta: dict[str, object]) -> None:
    async with in_memory(sample()) as client:
        result = await client.call_tool("whoami", {}, meta=meta)
    assert result.structured_content.get("user_id") is None


@pytest.mark.req("SRV-ALL")
async def test_progress_reaches_who_asked_for_it(in_memory: Connect) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        seen.append((done, total, message))

    async with in_memory(sample()) as client:
        result = await client.call_tool("count", {"to": 3}, progress_callback=note)
        assert not result.is_error
        with anyio.fail_after(5):
            while len(seen) < 3:
                await anyio.lowlevel.checkpoint()
    assert sorted(seen) == [(1, 3, "1 of 3"), (2, 3, "2 of 3"), (3, 3, "3 of 3")]


def test_our_registry_answers_like_the_sdks_own_server() -> None:
    async def handler(context: object, params: object) -> object:
        return None

    sdk = Server("x", version="1", instructions="i", on_list_tools=handler, on_call_tool=handler)  # pyright: ignore
    tools = sample().protocol
    ours = MethodRegistry(
        "x", "1", "i", {name: tools.get_request_handler(name) for name in ("tools/list", "tools/call")}
    )
    sent, expected = (it.create_initialization_options().model_dump(exclude_none=True) for it in (ours, sdk))
    assert expected["capabilities"].pop("extensions") == {}, "none of ours has extensions, and says nothing of them"
    assert sent == expected
    assert ours.server_info_stamp == sdk.server_info_stamp
    assert ours.capabilities == sdk.get_capabilities(protocol_version=LATEST_MODERN_VERSION)
    for method in ("ping", "server/discover", "tools/list", "tools/call"):
        assert ours.get_request_handler(method).params_type is sdk.get_request_handler(method).params_type
    assert ours.get_request_handler("prompts/list") is sdk.get_request_handler("prompts/list") is None
