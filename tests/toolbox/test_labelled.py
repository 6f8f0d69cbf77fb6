"""Where a result comes from and how far it may be trusted is said by us, never by who gave it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.core.trust import Trust
from annabelle.policy.tool_traits import reviewed_tools
from annabelle.toolbox.catalogue import NATIVE
from annabelle.toolbox.middleware.content import LabelResult

CONTEXT = CallContext(caller="agent", user_id="owner", labels=("pried",))


@dataclass
class Gives:
    """A server that gives this back."""

    trust: Trust

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        return ToolResult(text="x", structured={"trust": "trusted", "labels": [], "source": "own"}, trust=self.trust)


async def labelled(name: str, server: str, trust: Trust, *, ours: bool = True, vouched: bool = False) -> ToolResult:
    tool = ToolSpec(name=name, server=server, original_name=name, description="", input_schema={})
    traits = reviewed_tools().get(name) if ours else None
    return await LabelResult(Gives(trust), traits, vouched).call(tool, {}, CONTEXT)


@pytest.mark.req("POL-04", "TRU-03")
async def test_what_policy_knew_of_a_call_and_what_the_table_says_of_its_tool_is_on_the_result() -> None:
    mail = await labelled("gmail_get_email", "gmail", "untrusted")
    assert (mail.source, mail.trust, set(mail.labels)) == ("mail", "untrusted", {"private", "pried"})


@pytest.mark.req("POL-04", "TRU-03")
async def test_a_clock_is_trusted_and_a_helpers_report_is_what_it_says_of_itself() -> None:
    assert (await labelled("everyday_get_time", "everyday", "untrusted")).trust == "trusted"
    assert (await labelled("spawn_subagent", NATIVE, "untrusted")).trust == "untrusted"
    assert (await labelled("memory_retrieve_memories", "memory", "untrusted")).trust == "untrusted"


@pytest.mark.req("POL-04", "TRU-03")
@pytest.mark.parametrize(
    ("name", "trust"),
    [
        ("notes_add_todo", "trusted"),
        ("notes_create_note", "trusted"),
        ("notes_complete_todo", "untrusted"),
        ("notes_update_note", "untrusted"),
    ],
)
async def test_what_only_repeats_what_it_was_told_is_no_foreign_content(name: str, trust: Trust) -> None:
    assert (await labelled(name, "notes", "untrusted")).trust == trust


@pytest.mark.req("POL-04")
@pytest.mark.incident("I-08")
async def test_a_server_that_somebody_added_gets_no_trust_by_its_name_or_its_words() -> None:
    borrowed = await labelled("everyday_get_time", "everyday", "untrusted", ours=False)
    assert (borrowed.source, borrowed.trust) == ("external", "untrusted")


@pytest.mark.req("EXT-05", "TRU-03")
async def test_a_server_the_owner_trusts_is_vouched_for_and_its_content_stays_foreign() -> None:
    assert "vouched" not in (await labelled("crm_find", "crm", "untrusted", ours=False)).labels
    vouched = await labelled("crm_find", "crm", "untrusted", ours=False, vouched=True)
    assert (vouched.source, vouched.trust) == ("external", "untrusted")
    assert "vouched" in vouched.labels
