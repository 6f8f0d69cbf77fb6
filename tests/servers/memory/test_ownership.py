"""Whose memory a call is about follows from who calls, and nothing else (I-30)."""

from __future__ import annotations

import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.servers.kit import Call
from annabelle.servers.kit.call import Caller
from annabelle.servers.memory.arguments import require_home_owner, resolve_origin, resolve_owner
from annabelle.store.memory.owner import Owner
from servers.memory.memories import Memory

AGENT = Call(user_id="ada", agent_id="annabelle", caller="agent")
PEOPLE: list[Caller] = ["api", "cli", "hub"]


@pytest.mark.incident("I-30")
@pytest.mark.parametrize("asked", [None, "", "main", "annabelle"])
def test_an_agent_works_on_its_own_memory_by_whatever_name_it_calls_itself(asked: str | None) -> None:
    assert resolve_owner(AGENT, asked) == Owner("ada", "annabelle")


@pytest.mark.incident("I-30")
@pytest.mark.parametrize("asked", ["thinker", "Annabelle", " annabelle", "bob/annabelle"])
def test_an_agent_may_not_name_another(asked: str) -> None:
    with pytest.raises(NotAllowed):
        resolve_owner(AGENT, asked)
    with pytest.raises(NotAllowed):
        resolve_owner(Call(user_id="ada", agent_id="annabelle"), asked)  # who does not say what it is, is an agent


@pytest.mark.incident("I-30")
@pytest.mark.parametrize("caller", PEOPLE)
def test_people_may_name_another_agent_of_theirs(caller: Caller) -> None:
    call = Call(user_id="ada", agent_id="annabelle", caller=caller)
    assert resolve_owner(call) == Owner("ada", "annabelle")
    assert resolve_owner(call, "main") == Owner("ada", "annabelle")
    assert resolve_owner(call, "worker") == Owner("ada", "worker")
    with pytest.raises(InvalidArguments):
        resolve_owner(call, "../bob")


@pytest.mark.incident("I-30")
@pytest.mark.parametrize("call", [Call(), Call(user_id="ada"), Call(agent_id="annabelle", caller="hub")])
def test_a_call_that_does_not_say_who_it_is_for_gets_nothing(call: Call) -> None:
    with pytest.raises(NotAllowed):
        resolve_owner(call)


@pytest.mark.req("MEM-09", "TRU-03")
def test_what_an_agent_brings_is_untrusted_unless_the_hub_vouches_for_it() -> None:
    assert resolve_origin(AGENT)[0] == "untrusted"
    assert resolve_origin(Call(user_id="ada", agent_id="a", caller="agent", trust="trusted"))[0] == "trusted"
    assert resolve_origin(Call(user_id="ada", agent_id="a", caller="cli", trust="untrusted"))[0] == "untrusted"
    assert all(resolve_origin(Call(user_id="ada", agent_id="a", caller=caller))[0] == "trusted" for caller in PEOPLE)


@pytest.mark.req("MEM-09")
def test_where_something_came_from_is_kept_without_what_is_not_known() -> None:
    call = Call(
        user_id="ada",
        agent_id="a",
        caller="agent",
        message_id="msg_1",
        thread_id="thr_1",
        channel="cli",
        call_id="msg_1:1:0",
        trust="untrusted",
        origins=("web_fetch",),
    )
    assert resolve_origin(call)[1] == {
        "kind": "agent",
        "message_id": "msg_1",
        "thread_id": "thr_1",
        "channel": "cli",
        "call_id": "msg_1:1:0",
        "tools": ["web_fetch"],
    }
    assert resolve_origin(Call(user_id="ada", agent_id="a", caller="cli"))[1] == {"kind": "cli"}


@pytest.mark.incident("I-30")
def test_only_the_owner_of_the_home_is_its_owner() -> None:
    require_home_owner(Call(user_id="owner", caller="cli"))
    for user in ("ada", "Owner", None):
        with pytest.raises(NotAllowed):
            require_home_owner(Call(user_id=user, caller="cli"))


@pytest.mark.incident("I-30")
async def test_no_tool_takes_a_user_and_every_agent_id_may_be_left_out(memory: Memory) -> None:
    for tool in memory.server.tools.values():
        fields = tool.arguments.model_fields
        assert not {"user_id", "user", "owner"} & set(fields), f"{tool.name} would believe its caller"
        assert "agent_id" not in fields or not fields["agent_id"].is_required(), tool.name
