"""The door where a person's yes is asked for: who passes it, who waits, and what a repeat after a crash finds."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from annabelle.core.errors import NotAllowed
from annabelle.core.tools import CallContext, JsonObject, ToolAnnotations, ToolResult, ToolSpec
from annabelle.core.trust import AuditKind, PolicyDecision
from annabelle.toolbox.call_hooks import CallHooks
from annabelle.toolbox.middleware.access import RequireApproval

SPEC = ToolSpec(name="t_send", server="t", original_name="send", description="", input_schema={})
READING = SPEC.model_copy(update={"annotations": ToolAnnotations(read_only=True)})
CALL = CallContext(
    caller="agent", agent_id="a", user_id="owner", thread_id="thr_1", message_id="msg_1", call_id="msg_1:1:0",
    askable=True,
)  # fmt: skip


@dataclass
class Around:
    """The server behind the door, the policy, the desk and the audit, each noting what it hears."""

    decision: PolicyDecision
    yes: bool = False
    known: frozenset[str] = frozenset()
    made: list[CallContext] = field(default_factory=list[CallContext])
    heard: list[str] = field(default_factory=list[str])
    noted: list[object] = field(default_factory=list[object])

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        self.made.append(context)
        return ToolResult(text="made")

    async def judge(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> PolicyDecision:
        self.heard.append("judged")
        return self.decision

    async def granted(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> bool:
        self.heard.append("granted?")
        return self.yes

    async def ask(
        self, tool: ToolSpec, arguments: JsonObject, context: CallContext, decision: PolicyDecision
    ) -> ToolResult:
        self.heard.append("asked")
        return ToolResult(text="May I?", approval_id="apr_1")

    async def begun(self, call_id: str) -> bool:
        return call_id in self.known

    def note(self, kind: AuditKind, facts: JsonObject, trace_id: str | None = None) -> None:
        self.noted.append(facts["event"])

    def door(self) -> RequireApproval:
        return RequireApproval(self, CallHooks(judge=self, approvals=self, audit=self), self.begun)


@pytest.mark.req("POL-02")
async def test_what_policy_allows_is_made_with_its_labels_and_without_a_question() -> None:
    around = Around(PolicyDecision(labels=("private",)))
    assert (await around.door().call(SPEC, {}, CALL)).text == "made"
    assert around.heard == ["judged"]
    assert (around.made[0].labels, around.made[0].judged) == (("private",), True)


@pytest.mark.req("POL-02")
async def test_what_needs_a_yes_waits_until_there_is_one() -> None:
    around = Around(PolicyDecision(verdict="ask"))
    assert (await around.door().call(SPEC, {}, CALL)).approval_id == "apr_1"
    assert around.made == []
    around.yes = True
    assert (await around.door().call(SPEC, {}, CALL)).text == "made"
    assert around.heard == ["judged", "granted?", "asked", "judged", "granted?"]


@pytest.mark.req("POL-02")
async def test_a_refusal_and_a_question_nobody_could_hear_make_no_call_and_are_noted() -> None:
    around = Around(PolicyDecision(verdict="refuse", reasons=("Your rule says never.",)))
    with pytest.raises(NotAllowed, match="Your rule says never") as refused:
        await around.door().call(SPEC, {}, CALL)
    assert refused.value.body().for_person == "This was not done. Your rule says never."
    around.decision = PolicyDecision(verdict="ask")
    with pytest.raises(NotAllowed, match="nobody can be asked here"):
        await around.door().call(SPEC, {}, CALL.model_copy(update={"askable": False}))
    assert (around.made, around.noted) == ([], ["refused", "not_askable"])


@pytest.mark.req("POL-03", "DUR-03")
@pytest.mark.parametrize("verdict", ["ask", "refuse"])
async def test_a_repeat_of_a_call_that_was_let_through_is_not_turned_into_a_question(verdict: str) -> None:
    """What the call itself brought in may be why policy says otherwise now."""
    around = Around(PolicyDecision.model_validate({"verdict": verdict}), known=frozenset({"msg_1:1:0"}))
    assert (await around.door().call(SPEC, {}, CALL)).text == "made"
    other = CALL.model_copy(update={"call_id": "msg_1:1:1", "askable": False})
    with pytest.raises(NotAllowed):
        await around.door().call(SPEC, {}, other)


@pytest.mark.req("POL-02")
@pytest.mark.incident("I-07")
async def test_an_agent_without_a_call_id_may_only_look() -> None:
    around = Around(PolicyDecision(verdict="ask"))
    housework = CALL.model_copy(update={"call_id": None})
    assert (await around.door().call(READING, {}, housework)).text == "made"
    with pytest.raises(NotAllowed, match="call_id"):
        await around.door().call(SPEC, {}, housework)


@pytest.mark.req("POL-02")
async def test_a_call_inside_a_judged_call_and_a_persons_own_are_not_judged_again() -> None:
    around = Around(PolicyDecision(verdict="ask"))
    for context in (
        CALL.model_copy(update={"judged": True, "call_id": "msg_1:1:0:memory_store_fact"}),
        CallContext(caller="api", user_id="owner"),
        CallContext(caller="cli", user_id="owner"),
    ):
        assert (await around.door().call(SPEC, {}, context)).text == "made"
    assert around.heard == []
