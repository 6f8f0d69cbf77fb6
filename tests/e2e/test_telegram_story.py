"""From a fresh home to a chat on a phone: paired, asked, answered, reminded, stopped, killed, and nothing lost."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from annabelle.core.home import Home
from channels.bot_api_double import TOKEN, bot_api_double
from channels.conftest import Chatting
from cli.terminal import environment, run
from hub.hubs import HubProcess
from support.scripted_model import ScriptedServer, plan_text
from support.timing import seconds


@pytest.mark.req("CHN-01", "CHN-02", "TRU-02", "BEY-01")
@pytest.mark.timeout(600)
def test_the_story_of_a_phone(tmp_path: Path) -> None:
    with bot_api_double() as (bot, address), ScriptedServer() as model:
        home = Home(tmp_path / "home")
        known = environment(home, model.openai_url)
        assert run(known, "init", "--name", "Ada", "--time-zone", "Europe/Berlin", "--json").returncode == 0
        assert run(known, "config", "set", "TELEGRAM_BOT_TOKEN", stdin=f"{TOKEN}\n").returncode == 0
        assert run(known, "config", "set", "TELEGRAM_API_URL", address).returncode == 0
        hub = HubProcess(home, model.openai_url).start()
        hub.environment |= {"HOME": known["HOME"]}
        chat = Chatting(hub, bot)
        try:
            _live_through(chat, known)
        finally:
            hub.end()


def _live_through(chat: Chatting, known: dict[str, str]) -> None:
    hub, bot = chat.hub, chat.bot
    assert "Nobody is paired" in run(known, "channels").stdout
    bot.say("let me in", 66)
    bot.say("/start AAAABBBB", 66)
    chat.pair()
    shown = run(known, "channels").stdout
    assert "@annabelle_bot" in shown
    assert "Person 7" in shown

    chat.ask(plan_text([("get_status", {})], say="All is well."), "All is well.")

    skill = {"name": "Look", "instructions": "Look around.", "trigger_type": "manual"}
    bot.say(plan_text([("memory_store_skill", skill)], say="It is set up."))
    question = chat.wait_for_text("May I call")
    bot.press(question, "Yes", sender=66)
    bot.press(question, "Yes")
    chat.wait_for_text("It is set up.")

    soon = f"in {math.ceil(seconds(4))} seconds"
    chat.ask(plan_text([("memory_store_skill", {"message": "stretch", "when": soon})], say="I will."), "I will.")
    chat.wait_for_text("⏰ stretch")

    chat.ask("/cost", "tokens")
    chat.ask("/diagnose", "checks")
    chat.ask("/stop", "Nothing is running here.")

    bot.say(plan_text([], say="Before the kill."))
    hub.kill()
    bot.say(plan_text([], say="While it was dead."))
    hub.start()
    chat.wait_for_text("While it was dead.")
    told = bot.texts()
    for text in ("All is well.", "It is set up.", "⏰ stretch", "Before the kill.", "While it was dead."):
        assert told.count(text) == 1, (text, told)
    assert bot.texts(66) == []
    assert TOKEN not in hub.log()
