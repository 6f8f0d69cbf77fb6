"""Records lose the text and stay records."""

from __future__ import annotations

import json

import pytest

from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK, ForgetMatcher, mask_json, mask_value, prune_value

NEEDLE = ForgetMatcher(["canary"])


@pytest.mark.req("TRU-09")
def test_each_string_that_holds_it_is_replaced_and_nothing_else():
    record = {"user": "the Canary sings", "n": 3, "deep": [{"text": "no"}, ["canary", None, True]], "canary": "key"}
    assert mask_value(NEEDLE, record) == {
        "user": FORGOTTEN_MASK,
        "n": 3,
        "deep": [{"text": "no"}, [FORGOTTEN_MASK, None, True]],
        FORGOTTEN_MASK: "key",
    }


def test_json_inside_a_string_stays_json():
    record = {"part_kind": "tool-call", "args": json.dumps({"fact": "canary", "category": "pattern"})}
    new = mask_value(NEEDLE, record)
    assert isinstance(new, dict)
    assert json.loads(str(new["args"])) == {"fact": FORGOTTEN_MASK, "category": "pattern"}


def test_what_holds_a_record_together_stays_but_not_in_what_a_tool_was_given():
    matcher = ForgetMatcher(["text"])
    assert mask_value(matcher, {"type": "text", "text": "my text"}) == {"type": "text", FORGOTTEN_MASK: FORGOTTEN_MASK}
    assert mask_value(NEEDLE, {"status": "canary", "arguments": {"status": "canary", "id": "canary-1"}}) == {
        "status": "canary",
        "arguments": {"status": FORGOTTEN_MASK, "id": FORGOTTEN_MASK},
    }
    assert mask_value(NEEDLE, {"status": "a canary in a sentence"}) == {"status": FORGOTTEN_MASK}


def test_long_numbers_are_text_too():
    matcher = ForgetMatcher(["49170123"])
    assert mask_value(matcher, {"arguments": {"phone": 49170123456, "n": 49, "on": True}}) == {
        "arguments": {"phone": 0, "n": 49, "on": True}
    }


def test_stored_json_is_left_alone_when_it_does_not_hold_it():
    text = '{"a": "nothing",  "b":1}'
    assert mask_json(NEEDLE, text) == text
    assert mask_json(NEEDLE, "half a {canary") == FORGOTTEN_MASK
    assert json.loads(mask_json(NEEDLE, '{"a":"\\u0063anary"}')) == {"a": FORGOTTEN_MASK}


def test_a_profile_loses_the_entries_and_keeps_the_rest():
    profile = {"name": "Ada", "pets": ["canary", "cat"], "canary": {"age": 3}, "home": {"city": "canary", "none": None}}
    assert prune_value(NEEDLE, profile) == {"name": "Ada", "pets": ["cat"], "home": {"none": None}}
    assert prune_value(NEEDLE, {"pets": ["canary"], "list": [{"id": 1, "note": "a canary"}, {"id": 2}]}) == {
        "list": [{"id": 2}]
    }
    assert prune_value(NEEDLE, {"pets": ["canary"]}) is None
