"""“Always” makes a narrow rule: this tool, these addresses and things, this agent; listed, and revoked at will."""

from __future__ import annotations

import pytest

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.hub.approvals.approval_answer import AllowanceRule, allowance_for
from annabelle.policy.rules.rule import RuledCall, RuleMatch, StandingRule, matches
from annabelle.policy.tool_traits import ToolTraits, guess_traits, reviewed_tools
from annabelle.store import rules
from hub.approvals.house import House

MAIL = ToolSpec(
    name="gmail_send_email", server="gmail", original_name="send_email", description="",
    input_schema={"properties": {name: {} for name in ("to", "cc", "bcc", "subject", "body", "attachments")}},
)  # fmt: skip
OTHER = ToolSpec(
    name="x_share", server="x", original_name="share", description="",
    input_schema={"properties": {name: {} for name in ("who", "message", "options")}},
)  # fmt: skip


def passes(allowance: AllowanceRule, tool: str, arguments: JsonObject) -> bool:
    rule = StandingRule("rule_1", "allow", allowance.words, RuleMatch.model_validate(allowance.match))
    return matches(rule, RuledCall(tool, ("send_outside",), arguments))


@pytest.mark.req("POL-05")
def test_where_it_goes_is_fixed_and_what_it_says_is_free() -> None:
    traits = reviewed_tools().get(MAIL.name)
    assert traits is not None
    made = allowance_for(MAIL, traits, {"to": ["bob@example.com"], "subject": "Monday", "body": "…"}, "annabelle")
    assert made is not None
    assert made.words == (
        'Always let annabelle call gmail_send_email with to = ["bob@example.com"]; body, subject may be anything.'
    )
    assert passes(made, "gmail_send_email", {"to": ["bob@example.com"], "subject": "Tuesday", "body": "other"})
    for other in (
        {"to": ["eve@example.com"]},
        {"to": ["bob@example.com", "eve@example.com"]},
        {"to": ["bob@example.com"], "bcc": ["eve@example.com"]},
        {"to": ["bob@example.com"], "attachments": ["taxes.pdf"]},
        {"to": ["bob@example.com.evil.net"]},
        {"subject": "to nobody"},
    ):
        assert not passes(made, "gmail_send_email", other), other
    assert not passes(made, "gmail_reply_email", {"to": ["bob@example.com"]})


@pytest.mark.req("POL-05")
def test_a_star_in_an_address_stands_for_a_star() -> None:
    made = allowance_for(MAIL, ToolTraits(classes=("send_outside",)), {"to": "*@example.com"}, "annabelle")
    assert made is not None
    assert passes(made, "gmail_send_email", {"to": "*@example.com"})
    assert not passes(made, "gmail_send_email", {"to": "eve@example.com"})


@pytest.mark.req("POL-05")
def test_of_a_tool_nobody_reviewed_everything_stays_as_it_was_approved() -> None:
    made = allowance_for(OTHER, guess_traits(OTHER), {"who": "bob", "message": "hi"}, "annabelle")
    assert made is not None
    assert passes(made, "x_share", {"who": "bob", "message": "hi"})
    assert not passes(made, "x_share", {"who": "bob", "message": "hi!"})
    assert not passes(made, "x_share", {"who": "bob", "message": "hi", "options": "loud"})


@pytest.mark.req("POL-05")
@pytest.mark.parametrize(
    ("traits", "arguments"),
    [
        (ToolTraits(classes=("execute",)), {"who": "bob"}),
        (ToolTraits(classes=("send_outside", "control")), {"who": "bob"}),
        (ToolTraits(classes=("send_outside",)), {}),
        (ToolTraits(classes=("send_outside",)), {"options": {"who": "bob"}}),
        (ToolTraits(classes=("send_outside",)), {"who": "«redacted»"}),
    ],
)
def test_what_no_rule_can_hold_narrowly_has_none(traits: ToolTraits, arguments: JsonObject) -> None:
    assert allowance_for(OTHER, traits, arguments, "annabelle") is None


@pytest.mark.req("POL-05")
async def test_the_rule_is_shown_first_and_made_with_the_yes(house: House) -> None:
    await house.say({"to": "bob", "body": "hello"})
    (question,) = await house.asked()
    shown = question["always"]
    assert 'to = "bob"' in shown["words"]
    refused = await house.answer(question["id"], "deny", always=True)
    assert (refused.status_code, refused.json()["error"]["field"]) == (422, "always")
    answered = await house.answer(question["id"], always=True)
    await house.outcome(answered)
    (rule,) = await house.hub.storage.database.read(lambda conn: rules.list_rules(conn, "owner"))
    assert (rule.id, rule.kind, rule.state) == (answered.json()["ruleId"], "allow", "active")
    assert (rule.words, rule.match, rule.agent_id) == (shown["words"], shown["match"], "annabelle")
    assert house.posted == [{"to": "bob", "body": "hello"}]
