"""Records lose the text and stay records."""

from __future__ import annotations

import json

import pytest

from annabelle.core.masking import MASK, masked, masked_json, pruned
from annabelle.core.needle import Needle

NEEDLE = Needle(["canary"])


@pytest.mark.req("TRU-09")
def test_each_string_that_holds_it_is_replaced_and_nothing_else():
    record = {"user": "the Canary sings", "n": 3, "deep": [{"text": "no"}, ["canary", None, True]], "canary": "key"}
    assert masked(NEEDLE, record) == {"user": MASK, "n": 3, "deep": [{"text": "no"}, [MASK, None, True]], MASK: "key"}


def test_json_inside_a_string_stays_json():
    record = {"part_kind": "tool-call", "args": json.dumps({"fact": "canary", "category": "pattern"})}
    new = masked(NEEDLE, record)
    assert isinstance(new, dict)
    assert json.loads(str(new["args"])) == {"fact": MASK, "category": "pattern"}


def test_what_holds_a_record_together_stays_but_not_in_what_a_tool_was_given():
    needle = Needle(["text"])
    assert masked(needle, {"type": "text", "text": "my text"}) == {"type": "text", MASK: MASK}
    assert masked(NEEDLE, {"status": "canary", "arguments": {"status": "canary", "id": "canary-1"}}) == {
        "status": "canary",
        "arguments": {"status": MASK, "id": MASK},
    }
    assert masked(NEEDLE, {"status": "a canary in a sentence"}) == {"status": MASK}


def test_long_numbers_are_text_too():
    needle = Needle(["49170123"])
    assert masked(needle, {"arguments": {"phone": 49170123456, "n": 49, "on": True}}) == {
        "arguments": {"phone": 0, "n": 49, "on": True}
    }


def test_stored_json_is_left_alone_when_it_does_not_hold_it():
    text = '{"a": "nothing",  "b":1}'
    assert masked_json(NEEDLE, text) == text
    assert masked_json(NEEDLE, "half a {canary") == MASK
    assert json.loads(masked_json(NEEDLE, '{"a":"\\u0063anary"}')) == {"a": MASK}


def test_a_profile_loses_the_entries_and_keeps_the_rest():
    profile = {"name": "Ada", "pets": ["canary", "cat"], "canary": {"age": 3}, "home": {"city": "canary", "none": None}}
    assert pruned(NEEDLE, profile) == {"name": "Ada", "pets": ["cat"], "home": {"none": None}}
    assert pruned(NEEDLE, {"pets": ["canary"], "list": [{"id": 1, "note": "a canary"}, {"id": 2}]}) == {
        "list": [{"id": 2}]
    }
    assert pruned(NEEDLE, {"pets": ["canary"]}) is None
