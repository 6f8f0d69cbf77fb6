"""What a subagent may use: never more than the agent that sent it, whatever globs it is given."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, strategies as st

from annabelle.agents.subagent import FORBIDDEN_TOOLS, SubagentRequest, make_brief
from annabelle.core.contract import AgentProfile, TurnLimits
from annabelle.core.errors import Unauthorized
from annabelle.core.messages import now
from annabelle.core.tools import CallContext
from annabelle.hub.security.identities import Identities
from annabelle.hub.tasks.subagents import make_profile, make_scope
from annabelle.hub.tasks.task_runner import make_task_id
from annabelle.toolbox.catalogue import AgentPolicy

TASK = "task_0123456789abcdef0123456789"
CONTEXT = CallContext(
    caller="agent", agent_id="annabelle", user_id="owner", thread_id="thr", chat_id="main", channel="api",
    message_id="msg_1", call_id="msg_1:1:0", trace_id="tr_1",
)  # fmt: skip
_names = st.one_of(
    st.sampled_from(["filer_read_file", "filer_delete_file", "searcher_web_search", "get_status", *FORBIDDEN_TOOLS]),
    st.text("abf_*[]?.\\", max_size=8),
)
_globs = st.one_of(
    st.sampled_from(["*", "filer_*", "*_file", "**", "filer_read_file", "*e*", "", "[a-z]*", ".*", "(?i).*"]),
    st.text("abf_*[]?.\\", max_size=6),
)
_lists = st.lists(_globs, max_size=4).map(tuple)
_policies = st.builds(AgentPolicy, st.none() | _lists, _lists)


@pytest.mark.req("AGT-04")
@given(parent=_policies, allowed=st.none() | _lists, denied=_lists, name=_names)
def test_no_combination_of_globs_is_wider_than_the_parent(
    parent: AgentPolicy, allowed: tuple[str, ...] | None, denied: tuple[str, ...], name: str
) -> None:
    ask = SubagentRequest(task="x", allowed_tools=allowed, denied_tools=denied)
    errand = make_scope(ask, TASK, "msg_1")
    policy = parent.narrow(errand.allowed, errand.denied)
    asked_for = AgentPolicy(allowed, denied)
    assert policy.permits(name) == (parent.permits(name) and asked_for.permits(name) and name not in FORBIDDEN_TOOLS)


@pytest.mark.req("AGT-04")
@pytest.mark.parametrize("tool", ["spawn_subagent", "queue_task", "send_message"])
def test_a_subagent_sends_nobody_and_reports_to_nobody_else_even_when_it_is_allowed_to(tool: str) -> None:
    errand = make_scope(SubagentRequest(task="x", allowed_tools=("*", tool)), TASK, "msg_1")
    assert AgentPolicy().permits(tool)
    assert not AgentPolicy().narrow(errand.allowed, errand.denied).permits(tool)


@pytest.mark.req("AGT-04")
def test_a_subagent_of_a_subagent_would_be_narrower_still() -> None:
    parent = AgentPolicy(("filer_*",), ("filer_delete_*",))
    inner = parent.narrow(("*",), ()).narrow(None, ("filer_write_*",))
    assert [inner.permits(f"filer_{verb}_file") for verb in ("read", "write", "delete")] == [True, False, False]
    assert not inner.permits("get_status")


@pytest.mark.req("AGT-04")
def test_a_subagent_speaks_for_its_parent_with_a_secret_of_its_own_and_an_errand() -> None:
    identities = Identities("owner-token")
    errand = make_scope(SubagentRequest(task="x"), TASK, "msg_1")
    secret = identities.admit("annabelle", errand)
    identity = identities.identify(secret.encode())
    assert (identity.kind, identity.agent_id, identity.subagent_scope) == ("agent", "annabelle", errand)
    identities.revoke(secret)
    with pytest.raises(Unauthorized, match="token is missing or wrong"):
        identities.identify(secret.encode())


@pytest.mark.req("AGT-04")
@pytest.mark.parametrize(
    ("wanted", "provider", "model"),
    [("", "groq", "llama"), ("mixtral", "groq", "mixtral"), ("ollama:llama3.2:3b", "ollama", "llama3.2:3b"),
     ("llama3.2:3b", "groq", "llama3.2:3b")],
)  # fmt: skip
def test_it_thinks_as_its_parent_does_unless_another_model_is_named(wanted: str, provider: str, model: str) -> None:
    parent = AgentProfile(
        agent_id="annabelle", provider="groq", model="llama", temperature=0.3, system_prompt="Be kind."
    )
    profile = make_profile(parent, SubagentRequest(task="x", model=wanted), TASK)
    assert (profile.provider, profile.model, profile.temperature) == (provider, model, 0.3)
    assert (profile.agent_id, profile.temporary) == ("annabelle.sub-ef0123456789", True)
    assert "helper of annabelle" in profile.system_prompt


@pytest.mark.req("AGT-04")
def test_its_turn_is_bounded_in_steps_tokens_and_time() -> None:
    ask = SubagentRequest.model_validate({"task": "x", "timeoutMinutes": 2, "tokenBudget": 5000})
    brief = make_brief(ask, TASK, CONTEXT, TurnLimits(max_steps=3, max_tool_calls=5), "v1")
    assert brief.limits is not None
    assert (brief.limits.max_steps, brief.token_budget, brief.conversational) == (20, 5000, False)
    assert brief.limits.max_tool_calls == 5, "a strict agent has no less strict helpers"
    assert brief.limits.wall_clock_seconds < 120
    asked_at = now()
    assert ask.deadline(asked_at) - asked_at == timedelta(minutes=2)
    assert SubagentRequest(task="x").token_budget == 60_000


@pytest.mark.req("AGT-04")
@pytest.mark.incident("I-26")
def test_the_same_call_is_the_same_task_and_another_persons_is_not() -> None:
    other = CONTEXT.model_copy(update={"user_id": "bob"})
    assert make_task_id(CONTEXT) == make_task_id(CONTEXT.model_copy(update={"trace_id": "tr_2"}))
    assert make_task_id(CONTEXT) != make_task_id(other)
    free = CONTEXT.model_copy(update={"call_id": None})
    assert make_task_id(free) != make_task_id(free)
