"""There is one way to a tool, and every door stands on it, whoever comes and whatever happened before (I-07)."""

import ast
import asyncio
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

import annabelle
from annabelle.core.errors import InvalidArguments, NotAllowed, UnknownTool
from annabelle.core.tools import Audience, CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trust import Provenance, ScanDirections
from annabelle.toolbox.call_hooks import CallHooks, GuardConfig, GuardRules
from annabelle.toolbox.catalogue import AgentPolicy, Caller, NativeTool, ToolCatalogue, ToolOffer
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.facade import Toolbox, ToolServers
from annabelle.toolbox.guard import ContentGuard
from annabelle.toolbox.router import HubCalls, ToolRouter
from support.timing import seconds
from support.toolbox import TESTS, MemoryJournal, eventually, write_external

Start = Callable[[ToolboxConfig], Awaitable[Toolbox]]
WithServers = Callable[..., ToolboxConfig]

ORDER = [
    "AuditCall",
    "RequirePermission",
    "CheckArguments",
    "RejectSecrets",
    "RequireApproval",
    "RecordCall",
    "ScanContent",
    "LimitTime",
    "LabelResult",
    "ResolveSecrets",
    "RedactOutput",
]
AGENT = CallContext(caller="agent", agent_id="a", user_id="owner")
TEXT: JsonObject = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}


@dataclass
class Inside:
    """A server that only notes what got through to it."""

    heard: list[str] = field(default_factory=list)

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.heard.append(tool.name)
        return ToolResult(text="inside")


@pytest.mark.incident("I-07")
def test_the_doors_stand_in_their_order(journal: MemoryJournal) -> None:
    guard = ContentGuard(None, lambda agent_id: GuardRules())
    router = ToolRouter(ToolCatalogue(), journal, CallHooks(), guard)
    spec = ToolSpec(name="t_x", server="t", original_name="x", description="", input_schema={})
    server, policy = Inside(), AgentPolicy()
    way: object = router.build_chain(ToolOffer(spec, server, 7, scan=ScanDirections(input=False)), policy)
    doors: dict[str, Any] = {}
    while way is not server:
        doors[type(way).__name__] = way
        way = cast("Any", way).inner
    assert list(doors) == ORDER
    assert doors["RequirePermission"].policy is policy
    assert doors["RecordCall"].recorder is router.recorder
    assert doors["ScanContent"].guard is guard
    assert doors["ScanContent"].own == ScanDirections(input=False, output=True)
    assert doors["LimitTime"].seconds == 7
    assert doors["ResolveSecrets"].takes_secrets is False


async def expect_doors(toolbox: Toolbox, tool: str, arguments: JsonObject) -> None:
    """A denied call, an agent without a policy, and wrong arguments are each stopped; a good call gets through."""
    with pytest.raises(NotAllowed):
        await toolbox.call(tool, arguments, AGENT, AgentPolicy(denied=(tool,)))
    with pytest.raises(NotAllowed):
        await toolbox.call(tool, arguments, AGENT, AgentPolicy(allowed=()))
    with pytest.raises(NotAllowed):
        await toolbox.call(tool, arguments, AGENT, None)
    with pytest.raises(InvalidArguments):
        await toolbox.call(tool, {"surely": "not"}, AGENT, AgentPolicy())
    assert not (await toolbox.call(tool, arguments, AGENT, AgentPolicy())).is_error
    assert tool not in [spec.name for spec in toolbox.tools(AgentPolicy(denied=(tool,))).tools]


@pytest.mark.req("POL-01")
@pytest.mark.incident("I-07", "I-06")
async def test_every_way_to_a_tool_has_every_door_also_after_a_restart_and_a_reload(
    with_servers: WithServers, start: Start
) -> None:
    config = with_servers("echo")
    entry = {"command": sys.executable, "args": ["-m", "support.servers.who"], "env": {"PYTHONPATH": str(TESTS)}}
    write_external(config, {"outside": entry})
    toolbox = await start(config)
    native = Inside()
    handler_spec = NativeTool(
        "speak",
        "Speak.",
        {**TEXT, "additionalProperties": False},
        lambda arguments, context: native.call(handler_spec.spec(), arguments, context),
        ToolAnnotations(idempotent=True),
    )
    toolbox.add_native([handler_spec])
    ways = ["echo_say", "outside_say", "speak"]

    async def all_ways() -> None:
        for tool in ways:
            await expect_doors(toolbox, tool, {"text": "a"})

    await all_ways()
    for status in toolbox.servers():
        assert status.pid is not None
        os.kill(status.pid, signal.SIGKILL)
    await eventually(lambda: all(status.restarts == 1 and status.available for status in toolbox.servers()))
    await all_ways()
    await toolbox.restart("echo")
    write_external(config, {"outside": {**entry, "sensitive": True}, "later": entry})
    ways.append("later_say")
    await eventually(lambda: len(toolbox.servers()) == 3 and all(status.available for status in toolbox.servers()))
    await all_ways()
    assert len(native.heard) == 3, "only the good calls reached it"


@pytest.mark.req("GRD-02", "EXT-05")
@pytest.mark.incident("I-07")
async def test_every_way_to_a_tool_is_guarded_also_after_a_restart_and_a_reload(
    with_servers: WithServers, journal: MemoryJournal, tmp_path: Path
) -> None:
    config = with_servers("watchman", "witness")
    entry = {"command": sys.executable, "args": ["-m", "support.servers.who"], "env": {"PYTHONPATH": str(TESTS)}}
    write_external(config, {"outside": entry})
    guarding = GuardConfig(lambda agent_id: GuardRules())
    toolbox = Toolbox(ToolServers(config, journal, hooks=CallHooks(guard_config=guarding)))
    heard: list[object] = []

    async def speak(arguments: JsonObject, context: CallContext) -> ToolResult:
        heard.append(arguments["text"])
        return ToolResult(text=f"It said {arguments['text']}.")

    ways: list[tuple[str, str]] = [("witness_act", "word"), ("outside_say", "text")]
    callers = [AGENT, *(AGENT.model_copy(update={"caller": caller}) for caller in ("api", "cli", "hub"))]

    async def all_ways() -> None:
        for context in callers:
            for tool, name in ways:
                blocked = await toolbox.call(tool, {name: "EVIL"}, context, AgentPolicy())
                assert (blocked.error and blocked.error.code, "was not called" in blocked.text) == (
                    "security_blocked",
                    True,
                ), f"{context.caller} reached {tool} past the guard"
                assert not (await toolbox.call(tool, {name: "good"}, context, AgentPolicy())).is_error
            withheld = await toolbox.call("speak", {"text": "EVIL"}, context, AgentPolicy())
            assert withheld.error is not None
            assert "EVIL" not in withheld.model_dump_json(), "a tool of the hub's own may pass on foreign words"

    try:
        await asyncio.wait_for(toolbox.start(), seconds(60))
        toolbox.add_native([NativeTool("speak", "Speak.", TEXT, speak, ToolAnnotations(idempotent=True))])
        await all_ways()
        for status in toolbox.servers():
            assert status.pid is not None
            os.kill(status.pid, signal.SIGKILL)
        await eventually(lambda: all(status.restarts == 1 and status.available for status in toolbox.servers()))
        await all_ways()
        await toolbox.restart("witness")
        await toolbox.restart("watchman")
        write_external(config, {"outside": {**entry, "sensitive": True}, "later": entry})
        ways.append(("later_say", "text"))
        await eventually(lambda: len(toolbox.servers()) == 4 and all(one.available for one in toolbox.servers()))
        await all_ways()
    finally:
        await toolbox.stop()
    acted = (tmp_path / "witness.txt").read_text().splitlines()
    assert "EVIL" not in acted
    assert acted.count("good") == heard.count("EVIL") == 3 * len(callers)


def test_nobody_reaches_a_server_but_through_the_router() -> None:
    """A second way would be one without doors. Whoever adds a line here has to say why it needs none."""
    past_the_chain = {
        "toolbox/router.py": "the one way",
        "cli/mcp.py": "a client of the hub, which asks the router",
        "toolbox/middleware/secrets.py": "asks the vault for a handle's value, right before the server that gets it",
        "toolbox/guard.py": "asks the guardian itself",
        "toolbox/supervisor/server.py": "runs the server, and asks one of ours what it lacks",
        "toolbox/supervisor/supervisor.py": "starts and stops servers",
    }
    root = Path(annabelle.__file__).parent
    reaching = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if not path.is_relative_to(root / "toolbox" / "mcp") and _reaches_a_server(path.read_text())
    }
    assert reaching == past_the_chain.keys()


def _reaches_a_server(code: str) -> bool:
    """Whether code calls a tool on a connection, takes the client out of an offer, or knows a server by its class."""
    if not any(word in code for word in ("call_tool", ".client", "ManagedServer")):
        return False
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Attribute) and (node.attr == "call_tool" or ast.unparse(node) == "offer.client"):
            return True
        if isinstance(node, ast.ImportFrom) and any(name.name == "ManagedServer" for name in node.names):
            return True
        if isinstance(node, ast.ClassDef) and node.name == "ManagedServer":
            return True
    return False


@pytest.mark.req("POL-01")
async def test_a_tool_for_people_or_for_the_hub_is_neither_shown_to_others_nor_let_through(
    config: ToolboxConfig, start: Start
) -> None:
    toolbox = await start(config)

    async def answer(arguments: JsonObject, context: CallContext) -> ToolResult:
        return ToolResult(text=context.caller)

    audiences: list[Audience] = ["everyone", "people", "hub"]
    toolbox.add_native(NativeTool(f"for_{name}", "x", {"type": "object"}, answer, audience=name) for name in audiences)
    may: dict[Caller, list[str]] = {
        "agent": ["for_everyone"],
        "api": ["for_everyone", "for_people"],
        "cli": ["for_everyone", "for_people"],
        "hub": ["for_everyone", "for_hub", "for_people"],
    }
    assert [spec.name for spec in toolbox.tools().tools] == may["api"], "without a policy it is a person who asks"
    assert [spec.name for spec in toolbox.tools(AgentPolicy()).tools] == may["agent"]
    for caller, names in may.items():
        policy = AgentPolicy() if caller == "agent" else None
        assert [spec.name for spec in toolbox.tools(policy, caller).tools] == names
        for name in audiences:
            context = CallContext(caller=caller, agent_id="a", user_id="owner")
            if f"for_{name}" in names:
                result = await toolbox.call(f"for_{name}", {}, context, policy)
                assert (result.text, result.trust) == (caller, "trusted"), "what the hub serves itself is trusted"
            else:
                with pytest.raises(NotAllowed):
                    await toolbox.call(f"for_{name}", {}, context, policy)
    with pytest.raises(UnknownTool) as unknown:
        await toolbox.call("for_peopel", {}, AGENT, AgentPolicy())
    assert "for_people" not in (unknown.value.hint or ""), "a near miss does not give it away"


@pytest.mark.req("POL-01")
async def test_a_replay_is_no_way_around_the_policy(with_servers: WithServers, start: Start) -> None:
    toolbox = await start(with_servers("witness"))
    call = AGENT.model_copy(update={"call_id": "m:1:0"})
    await toolbox.call("witness_act", {"word": "a"}, call, AgentPolicy())
    with pytest.raises(NotAllowed):
        await toolbox.call("witness_act", {"word": "a"}, call, AgentPolicy(denied=("witness_*",)))


@pytest.mark.req("MEM-09")
async def test_an_external_server_is_told_no_more_than_it_always_was(with_servers: WithServers, start: Start) -> None:
    config = with_servers("echo")
    entry = {"command": sys.executable, "args": ["-m", "support.servers.echo"], "env": {"PYTHONPATH": str(TESTS)}}
    write_external(config, {"outside": entry})
    toolbox = await start(config)
    always = {"trace_id": "tr_1", "agent_id": "a", "user_id": "owner", "chat_id": "c", "message_id": "msg_1"}
    told = Provenance(trust="untrusted", origins=("web_fetch",))
    context = CallContext.model_validate(
        always | {"caller": "hub", "thread_id": "thr_1", "channel": "cli", "provenance": told}
    )
    ours = (await toolbox.call("echo_surroundings", {}, context)).structured
    theirs = (await toolbox.call("outside_surroundings", {}, context)).structured
    assert ours is not None
    assert theirs is not None
    assert theirs["sent"] == always
    more = {"caller": "hub", "thread_id": "thr_1", "channel": "cli", "trust": "untrusted", "origins": ["web_fetch"]}
    assert ours["sent"] == always | more
    assert not toolbox.wants_provenance("echo_say"), "its manifest does not ask"
    assert not toolbox.wants_provenance("no_such_tool")


async def test_a_person_needs_no_policy_and_a_native_tool_keeps_its_plain_name(
    config: ToolboxConfig, start: Start, person: CallContext
) -> None:
    toolbox = await start(config)
    inside = Inside()
    tool = NativeTool("speak", "Speak.", TEXT, lambda arguments, context: inside.call(tool.spec(), arguments, context))
    toolbox.add_native([tool])
    assert (await toolbox.call("speak", {"text": "a"}, person)).text == "inside"
    assert [spec.description for spec in toolbox.tools().tools] == ["[Annabelle | Core] Speak."]


@pytest.mark.incident("I-07")
async def test_only_the_hub_itself_calls_without_a_judge(journal: MemoryJournal) -> None:
    guard = ContentGuard(None, lambda agent_id: GuardRules(enabled=False))
    catalogue, server = ToolCatalogue(), Inside()
    spec = ToolSpec(name="t_x", server="t", original_name="x", description="", input_schema={"type": "object"})
    catalogue.offer("t", [ToolOffer(spec, server, 7)])
    calls = HubCalls(ToolRouter(catalogue, journal, CallHooks(), guard))
    for caller in ("agent", "api", "cli"):
        with pytest.raises(NotAllowed, match="Only the hub itself"):
            await calls.call("t_x", {}, AGENT.model_copy(update={"caller": caller}))
    assert server.heard == []
    await calls.call("t_x", {}, CallContext(caller="hub", user_id="owner"))
    assert server.heard == ["t_x"]
