"""There is one way to a tool, and every door stands on it, whoever comes and whatever happened before (I-07)."""

import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed, UnknownTool
from annabelle.core.memory import Provenance
from annabelle.core.scans import Scan
from annabelle.core.tools import Audience, CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.toolbox.audience import Caller
from annabelle.toolbox.catalogue import Catalogue, Offer
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.doors import Doors
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.guard.guard import Guard
from annabelle.toolbox.guard.rules import GuardRules
from annabelle.toolbox.native import NativeTool
from annabelle.toolbox.policy import AgentPolicy
from annabelle.toolbox.router import Router
from annabelle.toolbox.wrappers.allowed import Allowed
from annabelle.toolbox.wrappers.approved import Approved
from annabelle.toolbox.wrappers.audited import Audited
from annabelle.toolbox.wrappers.checked import Checked
from annabelle.toolbox.wrappers.guarded import Guarded
from annabelle.toolbox.wrappers.recorded import Recorded
from annabelle.toolbox.wrappers.revealed import Revealed
from annabelle.toolbox.wrappers.timed import Timed
from support.toolbox import TESTS, MemoryJournal, eventually, write_external

Start = Callable[[ToolboxConfig], Awaitable[Toolbox]]
WithServers = Callable[..., ToolboxConfig]

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
    guard = Guard(None, lambda agent_id: GuardRules())
    router = Router(Catalogue(lambda version: None, lambda spec: None), journal, Doors(), guard)
    spec = ToolSpec(name="t_x", server="t", original_name="x", description="", input_schema={})
    server, policy = Inside(), AgentPolicy()
    whole = router.way_to(Offer(spec, server, 7, scan=Scan(input=False)), policy)
    assert isinstance(whole, Audited)
    way = whole.inner
    assert isinstance(way, Allowed)
    assert way.policy is policy
    assert isinstance(way.inner, Checked)
    assert isinstance(way.inner.inner, Approved)
    recorded = way.inner.inner.inner
    assert isinstance(recorded, Recorded)
    assert recorded.recorder is router.recorder
    guarded = recorded.inner
    assert isinstance(guarded, Guarded)
    assert guarded.guard is guard
    assert guarded.own == Scan(input=False, output=True)
    timed = guarded.inner
    assert isinstance(timed, Timed)
    assert timed.seconds == 7
    assert isinstance(timed.inner, Revealed)
    assert (timed.inner.takes_secrets, timed.inner.inner) == (False, server)


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
    entry = {"command": sys.executable, "args": ["-m", "support.servers.echo"], "env": {"PYTHONPATH": str(TESTS)}}
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
    context = CallContext(
        caller="hub",
        thread_id="thr_1",
        channel="cli",
        provenance=Provenance(trust="untrusted", origins=("web_fetch",)),
        **always,
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
