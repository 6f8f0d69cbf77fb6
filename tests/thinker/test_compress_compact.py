"""Results in fewer words: marked, never longer, and with everything a later call may need."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.thinker.compression.abbreviation import (
    STRONG,
    WEAK,
    AbbreviationDegree,
    abbreviate_result,
    find_identifiers,
    identifier_weight,
)
from thinker.histories import json_values

SHORTER = [AbbreviationDegree.COMPACT, AbbreviationDegree.PRUNED, AbbreviationDegree.NEEDED]
ORDER = {
    "order_id": "#W1234567",
    "status": "delivered",
    "items": [
        {"item_id": f"10000{n}", "name": "Lamp", "price": 93.5 + n, "text": "A lamp that is bright and large. " * 9}
        for n in range(6)
    ],
    "payment_methods": {
        "card_889": {"source": "card", "id": "card_889", "last_four": "3848"},
        "gift_777": {"source": "gift", "id": "gift_777", "amount": 280},
    },
    "email": "ada@example.org",
    "note": None,
}


@pytest.mark.req("CMP-07")
@pytest.mark.parametrize("degree", SHORTER)
def test_ids_names_states_and_prices_stay_and_long_texts_go(degree: AbbreviationDegree):
    text = json.dumps(ORDER)
    short = abbreviate_result(text, degree)
    assert len(short) < len(text) / 2
    for value in ("#W1234567", "delivered", "100003", "Lamp", "96.5", "card_889", "gift_777", "280", "ada@example.org"):
        assert value in short
    assert ("[tool: shortened, was " in short) == (degree is not AbbreviationDegree.COMPACT)
    assert degree is AbbreviationDegree.COMPACT or "bright" not in short


def test_rows_are_told_by_a_table():
    rows = json.dumps([{"flight": f"HAT{n}", "from": "SEA", "price": n * 10} for n in range(100, 120)])
    assert abbreviate_result(rows, AbbreviationDegree.COMPACT).startswith(
        "(flight|price) all from SEA; HAT100|1000; HAT101|1010;"
    )


@settings(deadline=None)
@given(json_values, st.sampled_from(SHORTER))
def test_no_json_gets_longer_or_breaks_it(value: object, degree: AbbreviationDegree):
    text = json.dumps(value)
    assert len(abbreviate_result(text, degree)) <= len(text)


@settings(deadline=None)
@given(st.text(max_size=2_000), st.sampled_from(SHORTER))
def test_no_text_gets_longer_or_breaks_it(text: str, degree: AbbreviationDegree):
    assert len(abbreviate_result(text, degree)) <= len(text)


@pytest.mark.req("CMP-07")
@settings(deadline=None)
@given(
    st.lists(st.from_regex(r"[a-z]{2,8}_[0-9]{3,9}", fullmatch=True), min_size=1, max_size=20), st.sampled_from(SHORTER)
)
def test_every_id_in_a_long_text_or_object_outlives_it(ids: list[str], degree: AbbreviationDegree):
    prose = " and then much was said about ".join(ids) + " without any number in it" * 20
    for text in (prose, json.dumps({"about": prose}), json.dumps([{"id": one, "about": "words " * 50} for one in ids])):
        assert all(one in abbreviate_result(text, degree) for one in ids)


def test_very_deep_json_is_read_as_text():
    text = "[" * 50_000 + "id_4711" + "]" * 50_000
    assert len(abbreviate_result(text, AbbreviationDegree.NEEDED)) < len(text)


@pytest.mark.parametrize(
    ("value", "key", "expected"),
    [
        ("W1234567", "", STRONG),
        ("ada@example.org", "", STRONG),
        ("/home/ada/plan.md", "", STRONG),
        ("bob", "user_id", STRONG),
        ("bob", "userId", STRONG),
        ("bob", "name", WEAK),
        ("7", "seats", 0),
        ("7", "price", WEAK),
        ("12:30", "", WEAK),
        ("a sentence that is nothing but a sentence", "", 0),
    ],
)
def test_what_looks_like_an_identifier_weighs_more(value: str, key: str, expected: int):
    assert identifier_weight(value, key) == expected


def test_the_identifiers_of_a_sentence_are_found_in_their_order():
    text = "Order #W42, card_77 and flight HAT229 on 2031-05-26 for $1,240, at 10 AM. Order #W42!"
    assert find_identifiers(text) == ["#W42", "card_77", "HAT229", "2031-05-26", "$1,240"]
