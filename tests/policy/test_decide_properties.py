"""What holds for every call and every turn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.core.tools import JsonObject
from annabelle.core.trust import PolicyDecision
from annabelle.policy.decide import decide
from annabelle.policy.tool_traits import reviewed_tools
from annabelle.policy.turn_facts import TurnFacts
from policy.house import House, Turn, call_of

_STRICTER = {"allow": 0, "ask": 1, "refuse": 2}
_WORDS = """
send delete reply to bob@example.com Bob Alice mail note the file Documents/cv.md write remember a calendar event please
not all my run python and then from about yoga mallory@evil.example http://s/news list
"""
WORDS = st.sampled_from(_WORDS.split())
SAYS = st.lists(WORDS, max_size=12).map(" ".join)
VALUES = st.sampled_from(
    [
        "bob@example.com",
        "mallory@evil.example",
        "m1",
        "m2",
        "yoga",
        "Documents/cv.md",
        "http://s/news",
        "hello",
        "77",
        "",
    ]
)
TOOLS = st.sampled_from(sorted(reviewed_tools()))
READS = st.lists(
    st.sampled_from(["gmail_list_emails", "gmail_list_events", "filer_list_files", "find_contact"]), max_size=3
)


@st.composite
def calls(draw: st.DrawFn) -> tuple[str, JsonObject]:
    tool = draw(TOOLS)
    traits = reviewed_tools()[tool]
    names = (*traits.to, *traits.of, *traits.paths, *traits.files, *traits.urls, *traits.queries, *traits.payload)
    return tool, {name: draw(VALUES) for name in (*names, *traits.code, *traits.values, *traits.given)}


def facts(says: str, earlier: str, reads: list[str]) -> TurnFacts:
    turn = Turn(House()).says(earlier).says(says)
    for tool in reads:
        turn.sees(tool, {"path": "Documents"})
    return turn.facts


def verdict(call: tuple[str, JsonObject], turn: TurnFacts) -> int:
    return _STRICTER[_decided(call, turn).verdict]


def _decided(call: tuple[str, JsonObject], turn: TurnFacts) -> PolicyDecision:
    return decide(call_of(*call), turn)


@pytest.mark.req("POL-04", "TRU-03")
@settings(max_examples=300, deadline=None)
@given(calls(), SAYS, SAYS, READS)
def test_foreign_content_and_warnings_never_make_policy_more_willing(
    call: tuple[str, JsonObject], says: str, earlier: str, reads: list[str]
) -> None:
    turn = facts(says, earlier, reads)
    clean = verdict(call, replace(turn, origins=()))
    tainted = verdict(call, replace(turn, origins=("web_fetch",)))
    assert clean <= tainted
    assert tainted <= verdict(call, replace(turn, origins=("web_fetch", "gmail_get_email")))
    assert tainted <= verdict(call, replace(turn, origins=("web_fetch",), suspicious=True))
    assert tainted <= verdict(call, replace(turn, origins=("web_fetch",), unsolicited_read=True))


@pytest.mark.req("POL-04")
@settings(max_examples=200, deadline=None)
@given(calls(), READS)
def test_who_ordered_nothing_gets_nothing_sent_deleted_run_or_changed(
    call: tuple[str, JsonObject], reads: list[str]
) -> None:
    decision = _decided(call, facts("What is new?", "Good morning", ["gmail_list_emails", *reads]))
    if {"send_outside", "destroy", "execute", "control"} & set(decision.classes):
        assert decision.verdict == "ask"


@pytest.mark.req("POL-04")
@settings(max_examples=100, deadline=None)
@given(calls(), st.text(max_size=200), st.text(max_size=40))
def test_whatever_is_said_there_is_a_decision_with_its_reason(
    call: tuple[str, JsonObject], says: str, odd: str
) -> None:
    tool, arguments = call
    decision = _decided((tool, dict.fromkeys(arguments, odd)), facts(says, odd, ["gmail_list_emails"]))
    assert decision.verdict == "allow" or decision.reasons
