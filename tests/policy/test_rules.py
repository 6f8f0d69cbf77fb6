"""Rules come first: what a person forbids, wants to be asked about, or allows for good (POL-05, TRU-05)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from annabelle.core.tools import JsonObject
from annabelle.policy.rules.rule import RuledCall, RuleKind, RuleMatch, StandingRule, exact_glob, matches
from policy.house import Turn

MAIL: JsonObject = {"to": "bob@example.com", "subject": "s", "body": "b"}


def rule(kind: RuleKind, **match: object) -> StandingRule:
    return StandingRule("r1", kind, "as it was said", RuleMatch.model_validate(match))


def allow_bob() -> StandingRule:
    fixed = {"to": (exact_glob("bob@example.com"),), "cc": (), "bcc": (), "attachments": ()}
    return rule("allow", tools=("gmail_send_email",), arguments=fixed)


@pytest.mark.req("TRU-05")
def test_never_is_refused_and_ask_is_asked_about_whatever_was_ordered() -> None:
    turn = Turn().says("Send bob@example.com a mail")
    assert turn.decides("gmail_send_email", MAIL).verdict == "allow"
    turn.rules = (rule("ask", tools=("gmail_*",), classes=("send_outside",)),)
    assert turn.decides("gmail_send_email", MAIL).verdict == "ask"
    turn.rules = (*turn.rules, rule("never", mentions=("Bob",)))
    decision = turn.decides("gmail_send_email", MAIL)
    assert (decision.verdict, decision.reasons) == ("refuse", ("Your rule says: as it was said",))


@pytest.mark.req("TRU-05")
def test_a_rule_about_somebody_holds_also_where_a_call_names_them_by_an_id_only() -> None:
    turn = Turn(rules=(rule("never", classes=("send_outside",), mentions=("Alice",)),)).says("Reply to Alice: yes")
    turn.calls("gmail_list_emails")
    assert turn.decides("gmail_reply_email", {"message_id": "m2", "body": "yes"}).verdict == "refuse"


@pytest.mark.req("POL-05")
def test_an_allowance_passes_what_lies_inside_of_it_and_nothing_beside_it() -> None:
    turn = Turn(rules=(allow_bob(),)).says("Good morning").sees("gmail_list_emails", {})
    assert turn.decides("gmail_send_email", MAIL).verdict == "allow"
    for more in ({"bcc": "mallory@evil.example"}, {"to": "mallory@evil.example"}, {"attachments": ["a.md"]}):
        assert turn.decides("gmail_send_email", MAIL | more).verdict == "ask", more
    both: JsonObject = {"to": ["bob@example.com", "mallory@evil.example"]}
    assert turn.decides("gmail_send_email", MAIL | both).verdict == "ask"


@pytest.mark.req("POL-05")
def test_an_allowance_that_leaves_something_open_does_not_allow_it() -> None:
    open_one = rule("allow", tools=("gmail_send_email",))
    assert Turn(rules=(open_one,)).says("Good morning").decides("gmail_send_email", MAIL).verdict == "ask"


@pytest.mark.req("POL-05")
@pytest.mark.incident("I-11")
def test_an_allowance_does_not_cover_what_an_update_of_a_server_brought_along() -> None:
    turn = Turn(rules=(rule("allow", tools=("post_share",), arguments={"who": ("bob",)}),)).says("Good morning")
    assert turn.decides("post_share", {"who": "bob"}).verdict == "allow"
    for more in ("copy", "note", "payload"):
        assert turn.decides("post_share", {"who": "bob", more: "my diary"}).verdict == "ask", more


@pytest.mark.req("POL-05", "GRD-02")
def test_an_allowance_does_not_hold_where_something_looks_like_an_attack() -> None:
    turn = Turn(rules=(allow_bob(),)).says("Good morning").sees("gmail_list_emails", {})
    turn.facts = replace(turn.facts, suspicious=True)
    assert turn.decides("gmail_send_email", MAIL).verdict == "ask"


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    ("match", "fits"),
    [
        ({"tools": ["gmail_*"]}, True),
        ({"tools": ["filer_*"]}, False),
        ({"classes": ["destroy", "send_outside"]}, True),
        ({"classes": ["destroy"]}, False),
        ({"arguments": {"to": ["*@EXAMPLE.com"]}}, True),
        ({"arguments": {"cc": ["*"]}}, False),
        ({"mentions": ["Taxes"]}, True),
        ({"mentions": ["tax"]}, False),
        ({"tools": ["gmail_*"], "mentions": ["nothing"]}, False),
        ({}, False),
    ],
)
def test_every_condition_has_to_hold_and_a_rule_without_one_is_about_nothing(match: JsonObject, fits: bool) -> None:
    call = RuledCall("gmail_send_email", ("send_outside",), {"to": ["a@x.org", "bob@example.com"]}, ("Taxes/2024",))
    assert matches(rule("ask", **match), call) is fits


@pytest.mark.req("POL-05")
@pytest.mark.parametrize("text", ["a[1]*.md", "what?", "plain", "[", "*"])
def test_an_exact_glob_fits_its_text_alone(text: str) -> None:
    one = rule("allow", arguments={"path": (exact_glob(text),)})
    assert matches(one, RuledCall("t", (), {"path": text}))
    assert not matches(one, RuledCall("t", (), {"path": f"{text}x"}))
    assert not matches(one, RuledCall("t", (), {"path": "a1zz.md"}))
