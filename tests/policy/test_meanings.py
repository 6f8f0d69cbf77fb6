"""Names across languages, and who is meant by a name that only the mailbox knows."""

from __future__ import annotations

import pytest

from annabelle.policy.person_words import content_words
from annabelle.policy.recipients import find_sender_names
from annabelle.policy.turn_facts import TurnFacts
from annabelle.policy.vocabulary import map_meanings
from policy.house import Turn


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Zahnarzttermin", "Dentist"),
        ("jardinage", "Garden"),
        ("boletín", "Weekly"),
        ("chleb", "bread"),
        ("Rechnung", "Invoice"),
    ],
)
def test_a_thing_has_one_meaning_in_every_language(one: str, other: str) -> None:
    assert map_meanings(content_words(one)) == map_meanings(content_words(other))


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("says", "event"),
    [
        ("annule le dentiste", "dentist"),
        ("Verschieb den Zahnarzttermin auf 11 Uhr", "dentist"),
        ("odwołaj dentystę", "dentist"),
    ],
)
def test_an_event_goes_by_its_name_in_another_language(says: str, event: str) -> None:
    now = Turn().says(says)
    now.sees("gmail_list_events", {})
    tool = "gmail_update_event" if says.startswith("Verschieb") else "gmail_delete_event"
    assert now.decides(tool, {"event_id": event}).verdict == "allow"
    assert now.decides(tool, {"event_id": "team"}).verdict == "ask"


@pytest.mark.req("POL-04")
@pytest.mark.parametrize(
    ("says", "address", "names"),
    [
        ("find an hour to meet Carla and send her an invite", "carla@work.example", {"carla"}),
        ("mail the info to Bob", "info@evil.example", set[str]()),
    ],
)
def test_a_name_in_an_address_is_looked_up_and_that_of_an_office_is_not(
    says: str, address: str, names: set[str]
) -> None:
    assert find_sender_names([address], TurnFacts(words=says)) == names
