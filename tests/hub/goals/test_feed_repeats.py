"""What the feed takes for a repeat: the same thing in other words, and nothing else (AGE-09)."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from random import Random

import pytest

from annabelle.core.messages import OWNER
from annabelle.hub.goals.feed_repeats import COMPARED, FeedRepeats
from annabelle.store.feed import FeedItem, NewFeedItem
from support.timing import seconds

SAME = [
    (
        "Cheaper insurance for the bike",
        "The cycling club has an insurance for bicycles at 48 euros a year that also covers theft at night.",
        "The cycling club insures bicycles",
        "For 48 euros a year the cycling club has an insurance for bicycles, and theft at night is covered too.",
    ),
    (
        "Elternkarenz rechtzeitig melden",
        "Die Arbeiterkammer erinnert: die Karenz muss spätestens drei Monate vor Beginn dem Arbeitgeber gemeldet"
        " werden.",
        "Frist für die Karenz",
        "Spätestens drei Monate vor Beginn muss die Karenz dem Arbeitgeber gemeldet werden, erinnert die"
        " Arbeiterkammer.",
    ),
    (
        "Wykład o Chopinie",
        "Filharmonia w Krakowie zaprasza na bezpłatny wykład o mazurkach Chopina w sobotę o 17.",
        "Mazurki Chopina w Krakowie",
        "W sobotę o 17 jest bezpłatny wykład o mazurkach Chopina, na który zaprasza filharmonia w Krakowie.",
    ),
    (
        "Compost thermometers are worth it",
        "The Horticultural Society recommends keeping a hot heap between 55 and 65 degrees and turning it weekly."
        " https://rhs.example.org/compost",
        "Keep the compost hot",
        "A hot heap should stay between 55 and 65 degrees and be turned every week, the Horticultural Society"
        " recommends. https://www.rhs.example.org/compost",
    ),
]
DIFFERENT = [
    (
        "New release of Blender",
        "Blender 4.2 is out with faster rendering. https://www.blender.org/download",
        "New release of Blender",
        "Blender 4.3 is out with faster rendering. https://www.blender.org/download",
    ),
    (
        "Fewer notes about drawing",
        "You wrote fewer notes about drawing this month than last month.",
        "More notes about drawing",
        "You wrote more notes about drawing this month than last month.",
    ),
    (
        "Magnesium does not stop cramps",
        "A review found that magnesium is unlikely to prevent cramps in older adults.",
        "Stretching does not stop cramps",
        "A review found that stretching is unlikely to prevent cramps in older adults.",
    ),
    (
        "Podcast",
        "BBC Radio 3 has a new episode of Composer of the Week about Clara Schumann, an hour long, free to hear.",
        "Podcast",
        "BBC Radio 3 has a new episode of Composer of the Week about Fanny Hensel, an hour long, free to hear.",
    ),
    (
        "Scale of the week: G major",
        "Play the scale of G major in two octaves, hands together, and notice the F sharp.",
        "Scale of the week: D major",
        "Play the scale of D major in two octaves, hands together, and notice the F and C sharp.",
    ),
    (
        "La vie quotidienne à Rome",
        "Une série de podcasts raconte la vie quotidienne à Rome, en libre écoute.",
        "La vie quotidienne à Athènes",
        "Une série de podcasts raconte la vie quotidienne à Athènes, en libre écoute.",
    ),
    ("Chords", "Look at this.", "Chords", "There are more."),
    ("🎹", "…", "🎻", "…"),
]


def told(title: str, content: str) -> FeedItem:
    return FeedItem(
        id="feed_1",
        user_id=OWNER,
        kind="discovery",
        title=title,
        content=content,
        digest="",
        created_at=datetime(2027, 3, 26, tzinfo=UTC),
    )


def new(title: str, content: str) -> NewFeedItem:
    return NewFeedItem(user_id=OWNER, kind="reflection", title=title, content=content)


@pytest.mark.req("AGE-09")
@pytest.mark.parametrize(("title", "content", "other_title", "other_content"), SAME)
def test_the_same_thing_in_other_words_is_a_repeat(
    title: str, content: str, other_title: str, other_content: str
) -> None:
    assert FeedRepeats([told(title, content)]).find(new(other_title, other_content)) is not None
    assert FeedRepeats([told(other_title, other_content)]).find(new(title, content)) is not None


@pytest.mark.req("AGE-09")
@pytest.mark.parametrize(("title", "content", "other_title", "other_content"), DIFFERENT)
def test_another_thing_in_like_words_is_none(title: str, content: str, other_title: str, other_content: str) -> None:
    assert FeedRepeats([told(title, content)]).find(new(other_title, other_content)) is None
    assert FeedRepeats([told(other_title, other_content)]).find(new(title, content)) is None


@pytest.mark.req("AGE-09")
def test_the_same_page_needs_fewer_words_in_common() -> None:
    known = "The garden centre warns of late blight this week: keep the plants dry and remove lower leaves."
    again = (
        "Late blight is about in many gardens now. Take care to keep plants dry and to remove lower leaves, the centre"
        " warns today."
    )
    page = " https://garden.example.org/blight"
    both = [FeedRepeats([told("Blight", known + end)]).find(new("Tomatoes", again + end)) for end in ("", page)]
    assert [one is not None for one in both] == [False, True]


@pytest.mark.req("AGE-09")
def test_the_longest_items_are_compared_in_a_moment() -> None:
    random = Random(7)
    words = ["".join(random.choices("abcdefgh", k=3)) for _ in range(40)]
    texts = [" ".join(random.choices(words, k=500)) for _ in range(COMPARED - 1)] + ["a " * 1000]
    began = time.monotonic()
    repeats = FeedRepeats(told("Long", text) for text in texts)
    for _ in range(5):
        repeats.find(new("Long", " ".join(random.choices(words, k=500))))
    repeats.find(new("Long", "a " * 999))
    assert time.monotonic() - began < seconds(10)
