"""A hub that is killed on the way from Telegram and back: nothing is lost, nothing is said twice (TRU-02)."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from annabelle.hub.failpoints import CHANNEL_FAILPOINTS
from channels.conftest import Chatting
from hub.hubs import wait_for
from support.scripted_model import plan_text

ON_THE_WAY = (
    "hub.after_update",
    "hub.after_receive",
    "hub.after_claim",
    "hub.after_update_read",
    "hub.before_turn",
    "hub.after_turn",
    "hub.before_deliver",
    "hub.after_deliver",
    "hub.before_send",
    "hub.after_send",
)
ROUNDS = 4
"""Messages per failpoint: one it dies of, and some that wait behind it."""


def test_every_point_on_the_way_is_tried() -> None:
    assert set(CHANNEL_FAILPOINTS) <= set(ON_THE_WAY)


@pytest.mark.req("TRU-02", "CHN-04", "DUR-01")
@pytest.mark.incident("I-20")
@pytest.mark.timeout(900)
def test_killed_at_every_point_it_answers_each_message_once_or_names_it(chatting: Chatting, failpoints: Path) -> None:
    chatting.pair()
    named = 0
    for point in ON_THE_WAY:
        said = [f"{point} {number}" for number in range(ROUNDS)]
        (failpoints / point).touch()
        for text in said:
            chatting.bot.say(plan_text([], say=text))
        assert chatting.hub.wait(60) == -signal.SIGKILL, f"{point} was not reached"
        chatting.hub.start()
        chatting.wait_for_text(said[-1])
        told = chatting.bot.texts()
        unsure = [text for text in told if "not certain" in text]
        named += len(unsure)
        for text in said:
            # Killed before it was sent, it is not known whether it was: then it is named, and not sent again.
            assert told.count(text) == 1 or (told.count(text) == 0 and any(text in one for one in unsure)), (
                point,
                text,
            )
        assert [text for text in told if text in said] == [text for text in said if text in told], point
    assert named >= 2, "a kill while a message is sent leaves it unknown"


@pytest.mark.req("CHN-02", "CMD-02")
def test_who_was_paired_is_known_after_a_kill(chatting: Chatting) -> None:
    chatting.pair()
    chatting.hub.kill()
    chatting.bot.say(plan_text([], say="Still you."))
    chatting.hub.start()
    chatting.wait_for_text("Still you.")
    wait_for(lambda: chatting.bot.count("getUpdates") > 2, "polling")
