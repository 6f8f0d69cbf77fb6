"""What a person sees while Annabelle works, and that a plain answer comes soon."""

from __future__ import annotations

import statistics
import time

import pytest

from channels.conftest import Chatting
from hub.hubs import wait_for
from support.scripted_model import Call, Reply, Rule, ScriptedServer, plan_text
from support.timing import seconds


@pytest.mark.req("CHN-06")
def test_typing_and_one_line_per_tool_are_shown_and_gone_at_the_end(chatting: Chatting, model: ScriptedServer) -> None:
    chatting.pair()
    slow = Reply(text="All is well.", delay=seconds(6))
    model.rules(
        Rule(match="how are you", times=1, reply=Reply(tool_calls=[Call(name="get_status", arguments={})])),
        Rule(match="how are you", times=1, reply=slow),
    )
    chatting.bot.say("how are you?")
    chatting.wait_for_text("⚙ get status")
    assert chatting.bot.count("sendChatAction") > 0
    chatting.wait_for_text("All is well.")
    wait_for(lambda: not any("⚙" in text for text in chatting.bot.texts()), "the end of the line")
    model.rules()


@pytest.mark.req("PERF-01")
def test_a_plain_message_is_answered_soon_after_the_model_has(chatting: Chatting) -> None:
    """The bench `load` has the figures; here half a second on an idle machine is the bound."""
    chatting.pair()
    chatting.ask(plan_text([], say="The first starts the agent."), "The first")
    taken: list[float] = []
    for number in range(7):
        began = time.perf_counter()
        chatting.bot.say(plan_text([], say=f"Plain {number}."))
        while f"Plain {number}." not in chatting.bot.texts():
            time.sleep(0.002)
        taken.append(time.perf_counter() - began)
    # The scripted model answers at once, but an agent waits a second between calls of its model.
    assert statistics.median(taken) <= 1.0 + seconds(0.5)
