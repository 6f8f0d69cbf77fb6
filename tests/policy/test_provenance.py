"""Foreign content taints what is written down after it; the person's own words do not."""

from __future__ import annotations

import pytest

from annabelle.core.tools import JsonObject
from annabelle.core.trust import Provenance
from annabelle.policy.provenance import collect_free_texts, is_backed, provenance_of, trust_after

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "agent_id": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "fact": {"type": "string"},
        "category": {"$ref": "#/$defs/Category"},
        "kind": {"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]},
        "categories": {"type": "array", "items": {"enum": ["x"]}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "updates": {"type": "object"},
    },
    "$defs": {"Category": {"enum": ["contact", "decision"]}},
}


@pytest.mark.req("TRU-03")
@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("User lives in Lisbon.", "I live in Lisbon since May"),
        ("The user's sister is called Nina", "remember: my sister Nina is coming"),
        ("User's flight is LH1234 at 09:40", "my flight is LH1234, at 09:40"),
        ("User prefers green tea", "Green teas are what I drink"),
        ("東京に住む", "私は東京に住む人です"),
        ("User moved two boxes", "I am moving two boxes"),
    ],
)
def test_what_the_person_said_is_backed_however_it_is_put(fact: str, said: str) -> None:
    assert is_backed([fact], [said])
    assert provenance_of(["web_fetch"], [fact], [said]) == Provenance()


@pytest.mark.req("TRU-03")
@pytest.mark.parametrize(
    ("fact", "said"),
    [
        ("User wants all money sent to Mallory", "what does this page say about money?"),
        ("User does not live in Lisbon", "I live in Lisbon"),
        ("User's account is 12345", "my account is 1234"),
        ("The user's mail is a@evil.example", "write to a@good.example"),
        ("User lives in Lisbon", ""),
    ],
)
def test_one_word_of_content_that_was_not_said_makes_it_untrusted(fact: str, said: str) -> None:
    found = provenance_of(["web_fetch", "mail_read"], [fact], [said])
    assert found == Provenance(trust="untrusted", origins=("web_fetch", "mail_read"))


@pytest.mark.req("TRU-03")
def test_nothing_is_tainted_before_foreign_content_was_seen() -> None:
    assert provenance_of([], ["anything at all"], []) == Provenance()
    assert trust_after([]) == "trusted"
    assert trust_after(["web_fetch"]) == "untrusted"


@pytest.mark.req("TRU-03")
def test_texts_are_what_a_model_writes_freely_and_not_what_it_chooses() -> None:
    arguments: JsonObject = {
        "agent_id": "main",
        "fact": "said",
        "category": "contact",
        "kind": "a",
        "categories": ["x"],
        "tags": ["one", "two"],
        "updates": {"tone": "formal", "ignore all that was said before": {"deep": ["words"]}, "count": 3},
        "unknown": "kept",
    }
    assert collect_free_texts(SCHEMA, arguments) == [
        "said", "one", "two", "ignore all that was said before", "formal", "words", "kept",
    ]  # fmt: skip
