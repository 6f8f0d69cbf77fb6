"""A sentence is read for what it states, and only what contradicts it is replaced."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from annabelle.servers.memory.statement import read_statement

REPLACED = [
    ("Lives in Berlin", "Lives in Lisbon"),
    ("The user lives in Berlin.", "I moved to Lisbon"),
    ("User lives in Berlin since 2019", "The user now lives in Lisbon"),
    ("Ada lives in Berlin, Germany", "Ada has recently moved from Berlin to Lisbon"),
    ("Lives in Berlin", "No longer lives in Berlin"),
    ("Lives in Berlin", "The user does not live in Berlin anymore"),
    ("User works at Siemens", "User works for Bosch"),
    ("Works as a teacher", "Works as a baker"),
    ("Works at Siemens", "Stopped working at Siemens"),
    ("My name is Ada", "The user's name is Grace"),
    ("The dog is called Rex", "The dog is called Bello"),
    ("User was born in 1985", "User was born in 1986"),
    ("User's favourite colour is blue", "My favorite colour is green"),
    ("Favourite food: pizza", "The user's favourite food is sushi"),
    ("Prefers tea over coffee", "Prefers coffee over tea"),
    ("User prefers vim to emacs", "User now prefers emacs over vim"),
    ("Ada's email is ada@old.org", "The email address of Ada is ada@new.org"),
    ("Bob's phone number is +49 170 111", "Bob's phone number is +49 170 222"),
    ("User is married to Sam", "User is married to Kim"),
    ("My wife's name is Sam", "The user's wife is called Kim"),
    ("User is allergic to peanuts", "User is no longer allergic to peanuts"),
    ("Likes olives", "Hates olives"),
    ("User drinks coffee", "User no longer drinks coffee"),
    ("Smokes cigars", "Quit smoking cigars"),
    ("Uses Firefox as the main browser", "Uses Chrome as their main browser"),
    ("User is 40 years old", "User is 41 years old"),
    ("User has two cats", "User has three cats"),
    ("The office is in Munich", "The office is now in Hamburg"),
    ("The deadline of project Zebra is Friday", "Project Zebra's deadline is Monday"),
    ("The rent is 1200 euros", "The rent is 1300 euros"),
    ("The standup starts at 9:30", "The standup starts at 10:00"),
    ("Gym membership costs $30 a month", "Gym membership costs $35 a month"),
    ("User's time zone is CET", "User's timezone is PST"),
    ("User can't stand jazz", "User loves jazz"),
]

KEPT = [
    ("Lives in Berlin", "Lives in Berlin, Germany"),
    ("Lives in Berlin", "User lives in Berlin now"),
    ("Lives in Berlin", "Ada lives in Lisbon"),
    ("My sister lives in Berlin", "My brother lives in Lisbon"),
    ("Lives in Berlin and works at Siemens", "Lives in Lisbon"),
    ("Lives in Berlin with two cats", "Lives in Lisbon"),
    ("Lives in Berlin", "Lives in Lisbon in summer"),
    ("Lives in Berlin", "She lives in Lisbon"),
    ("Lives in Berlin", "Wants to move to Lisbon"),
    ("Lives in Berlin", "Used to live in Hamburg"),
    ("Lives in Berlin", "Lived in Hamburg"),
    ("Lives in Berlin", "No longer lives in Hamburg"),
    ("Works at Siemens", "Also works at Bosch"),
    ("Likes tea", "Likes coffee"),
    ("Likes tea", "Hates coffee"),
    ("User is allergic to nuts", "User is allergic to cats"),
    ("Speaks fluent German", "Speaks fluent French"),
    ("User has two cats", "User has one dog"),
    ("Prefers tea over coffee", "Prefers trains over planes"),
    ("Ada's email is ada@old.org", "Ada's work email is ada@new.org"),
    ("Ran a marathon in 2019", "Ran a marathon in 2021"),
    ("Visited Paris in 2019", "Visited Paris in 2021"),
    ("User's dog is brown", "User's dog is old"),
    ("User is a teacher", "User is now vegetarian"),
    ("The office is in Munich", "The office is large"),
    ("The office is large", "The office is now in Hamburg"),
    ("The user is a teacher", "The user is now vegetarian"),
    ("My wife is a doctor", "My wife is now vegetarian"),
    ("The user is in a good mood", "The user is now in Paris"),
    ("User was born in Berlin", "User was born in 1985"),
    ("Uses Firefox as the main browser", "Uses Thunderbird as mail client"),
    ("Bus 42 leaves the stop, the fare is 3 euros", "Bus 43 leaves the stop, the fare is 4 euros"),
    ("Wohnt in Berlin", "Wohnt in Lissabon"),
    ("", ""),
]


@pytest.mark.req("MEM-09")
@pytest.mark.parametrize(("old", "new"), REPLACED, ids=[f"{old} - {new}" for old, new in REPLACED])
def test_another_value_of_the_same_relation_replaces_the_old_one(old: str, new: str):
    before, after = read_statement(old), read_statement(new)
    assert before is not None
    assert after is not None
    assert after.replaces(before)


@pytest.mark.req("MEM-09")
@pytest.mark.parametrize(("old", "new"), KEPT, ids=[f"{old} - {new}" for old, new in KEPT])
def test_what_can_hold_at_the_same_time_replaces_nothing(old: str, new: str):
    before, after = read_statement(old), read_statement(new)
    assert before is None or after is None or not after.replaces(before)


@given(st.text(max_size=250))
def test_any_text_can_be_read_and_never_contradicts_itself(text: str):
    stated = read_statement(text)
    assert stated is None or not stated.contradicts(stated)


@given(
    st.sampled_from([text for pair in REPLACED + KEPT for text in pair]),
    st.sampled_from([text for pair in REPLACED for text in pair]),
)
def test_a_contradiction_is_mutual(one: str, other: str):
    first, second = read_statement(one), read_statement(other)
    if first and second:
        assert first.contradicts(second) == second.contradicts(first)
