"""A person talks to Annabelle in Telegram: from the phone to the model and back."""

from __future__ import annotations

import json
import threading
import time

import pytest

from annabelle.channels.telegram.bot_api import BotApi
from annabelle.channels.telegram.channel import TelegramChannel
from channels.bot_api_double import TOKEN, SentMessage
from channels.conftest import Chatting
from hub.hubs import wait_for
from support.scripted_model import plan_text
from support.timing import seconds


@pytest.mark.req("CHN-01", "CHN-02", "BEY-01", "I-06")
def test_only_a_paired_account_is_answered(shared: Chatting) -> None:
    before = shared.ignored()
    shared.bot.say("hello?", 66)
    shared.bot.say("/start WRONGCOD", 66)
    shared.bot.say("/help", 66)
    shared.pair()
    shared.ask(plan_text([], say="Hello."), "Hello.")
    assert shared.bot.texts(66) == []
    (channel,) = shared.hub.http.get("/channels").json()["channels"]
    assert channel["ignored"] >= before + 3
    assert channel["account"] == "@annabelle_bot"


@pytest.mark.req("CHN-04")
@pytest.mark.incident("I-20")
def test_an_update_that_comes_twice_is_answered_once(shared: Chatting) -> None:
    shared.pair()
    update = shared.bot.say(plan_text([], say="Once."))
    shared.bot.put({"message": update["message"]})
    shared.wait_for_text("Once.")
    shared.ask(plan_text([], say="After."), "After.")
    assert [text for text in shared.bot.texts() if text == "Once."] == ["Once."]


@pytest.mark.req("CHN-04", "CST-07")
def test_many_messages_are_answered_in_order(shared: Chatting) -> None:
    shared.pair()
    for number in range(8):
        shared.bot.say(plan_text([], say=f"Number {number}."))
    shared.wait_for_text("Number 7.")
    told = [text for text in shared.bot.texts() if text.startswith("Number")]
    assert told == [f"Number {number}." for number in range(8)]


@pytest.mark.req("CST-07")
def test_what_was_written_while_the_hub_was_off_is_listed_and_not_answered(chatting: Chatting) -> None:
    chatting.pair()
    chatting.hub.stop()
    chatting.bot.say("is it too late?", date=int(time.time()) - 300)
    chatting.bot.say(plan_text([], say="In time."))
    chatting.hub.start()
    chatting.wait_for_text("In time.")
    assert "is it too late?" in chatting.wait_for_text("I was away").text
    assert not any("late" in text for text in chatting.bot.texts() if "I was away" not in text)


@pytest.mark.req("CST-08")
@pytest.mark.incident("I-16")
def test_programs_are_not_answered(shared: Chatting) -> None:
    shared.pair()
    bot = {"id": 7, "is_bot": True, "first_name": "Loop"}
    shared.bot.say(plan_text([], say="To a program."), **{"from": bot})
    shared.ask(plan_text([], say="To a person."), "To a person.")
    assert "To a program." not in shared.bot.texts()


def ask_for_skill(chatting: Chatting) -> SentMessage:
    skill = {"name": "Look", "instructions": "Look around.", "trigger_type": "manual"}
    chatting.bot.say(plan_text([("memory_store_skill", skill)], say="It is set up."))
    return chatting.wait_for_text("May I call")


@pytest.mark.req("POL-03")
def test_a_question_is_answered_by_a_button_and_names_no_terminal_command(shared: Chatting) -> None:
    shared.pair()
    question = ask_for_skill(shared)
    assert "annabelle approvals" not in question.text
    assert [label for label, _ in question.buttons] == ["Yes", "No"]


@pytest.mark.req("POL-05")
def test_a_question_that_was_answered_elsewhere_has_no_buttons_any_more(shared: Chatting) -> None:
    shared.pair()
    question = ask_for_skill(shared)
    shared.answer("deny")
    wait_for(lambda: not question.buttons, "no buttons")
    assert "Denied: memory_store_skill" in question.text


@pytest.mark.req("POL-05")
def test_a_question_that_was_answered_while_it_was_sent_has_no_buttons_in_the_end(shared: Chatting) -> None:
    shared.pair()
    answered = threading.Event()
    shared.bot.cut = lambda _method, given: "May I call" in str(given.get("text")) and not answered.wait(seconds(60))
    question = ask_for_skill(shared)
    shared.answer("deny")
    shared.hub.http.get("/approvals")  # what follows from the answer has begun
    answered.set()
    wait_for(lambda: not question.buttons, "no buttons")
    assert "Denied: memory_store_skill" in question.text


@pytest.mark.req("POL-05")
def test_a_question_that_is_taken_back_has_no_buttons_any_more(shared: Chatting) -> None:
    shared.pair()
    question = ask_for_skill(shared)
    shared.bot.say("/stop")
    wait_for(lambda: not question.buttons, "no buttons")
    assert "You stopped it" in question.text


@pytest.mark.req("CHN-05")
def test_a_long_answer_comes_in_parts_and_code_stays_code(shared: Chatting) -> None:
    shared.pair()
    code = "\n".join(f"line {number} < 5 & more" for number in range(400))
    shared.ask(plan_text([], say=f"Here it is:\n\n```python\n{code}\n```\n\nThe **end**."), "<b>end</b>")
    parts = [one for one in shared.bot.sent if "line" in one.text]
    assert len(parts) > 1
    assert all(len(one.text) <= 9_000 and one.text.count("<pre>") == one.text.count("</pre>") == 1 for one in parts)
    shown = "".join(one.text for one in parts)
    assert all(f"line {number} &lt; 5 &amp; more" in shown for number in range(400))


@pytest.mark.req("CHN-05")
@pytest.mark.incident("I-12")
def test_what_telegram_cannot_parse_is_sent_as_plain_text_and_nothing_has_a_preview(shared: Chatting) -> None:
    shared.pair()

    def refuse(method: str, given: dict[str, object]) -> tuple[int, dict[str, object]] | None:
        if method == "sendMessage" and given.get("parse_mode") == "HTML":
            return 400, {"ok": False, "error_code": 400, "description": "Bad Request: can't parse entities"}
        return None

    shared.bot.refuse = refuse
    assert shared.ask(plan_text([], say="It is **bold** & plain."), "bold").text == "It is bold & plain."
    given = [given for method, given in shared.bot.calls if method == "sendMessage"]
    assert {one["text"] for one in given} >= {"It is <b>bold</b> &amp; plain.", "It is bold & plain."}
    assert [one for one in given if one.get("link_preview_options") != {"is_disabled": True}] == []


@pytest.mark.req("CHN-04", "TRU-02")
def test_asked_to_wait_it_waits_and_sends_once(shared: Chatting) -> None:
    shared.pair()
    refusals = iter([(429, {"ok": False, "description": "Too Many Requests", "parameters": {"retry_after": 1}})] * 2)
    shared.bot.refuse = lambda method, _given: next(refusals, None) if method == "sendMessage" else None
    shared.ask(plan_text([], say="Patiently."), "Patiently.")
    assert shared.bot.texts().count("Patiently.") == 1


@pytest.mark.req("TRU-02")
def test_a_cut_connection_is_an_unknown_outcome_that_is_named_and_not_repeated(shared: Chatting) -> None:
    shared.pair()
    cuts = iter([True])
    shared.bot.cut = lambda method, given: (
        method == "sendMessage" and "Perhaps" in str(given["text"]) and next(cuts, False)
    )
    shared.bot.say(plan_text([], say="Perhaps."))
    shared.wait_for_text("not certain")
    assert shared.bot.texts().count("Perhaps.") == 1
    notices = shared.hub.http.get("/status").json()["notices"]
    assert any("not known whether a message arrived" in one["text"] for one in notices)


@pytest.mark.req("CHN-01")
def test_a_chat_that_blocks_the_bot_is_told_to_the_owner(shared: Chatting) -> None:
    shared.pair()
    refused = (403, {"ok": False, "error_code": 403, "description": "Forbidden: bot was blocked by the user"})
    shared.bot.refuse = lambda method, _given: refused if method == "sendMessage" else None
    shared.bot.say(plan_text([], say="Into the void."))

    def told() -> bool:
        notices = shared.hub.http.get("/status").json()["notices"]
        return any("was not delivered" in one["text"] and "blocked" in one["text"] for one in notices)

    wait_for(told, "a notice")


@pytest.mark.req("CHN-01")
def test_a_file_that_a_person_sends_lies_in_the_workspace(shared: Chatting) -> None:
    shared.pair()
    shared.bot.files["f1"] = b"milk, eggs"
    document = {"file_id": "f1", "file_name": "../list.txt", "file_size": 10}
    shared.bot.say("", document=document, text=None, caption=plan_text([], say="Got it."))
    shared.wait_for_text("Got it.")
    (kept,) = (shared.hub.home.workspace / "received").iterdir()
    assert kept.read_bytes() == b"milk, eggs"
    assert kept.name.endswith("list.txt")


@pytest.mark.req("CHN-01")
def test_of_a_picture_the_largest_size_is_fetched() -> None:
    sizes = [{"file_id": "thumb", "file_size": 900}, {"file_id": "whole", "file_size": 90_000}]
    message = {"message_id": 1, "from": {"id": 7}, "chat": {"id": 7, "type": "private"}, "date": 0, "photo": sizes}
    update = TelegramChannel(BotApi("http://127.0.0.1:9", TOKEN)).read({"message": message})
    assert update is not None
    assert [(one.id, one.kind, one.size) for one in update.attachments] == [("whole", "image", 90_000)]


@pytest.mark.req("CHN-02")
def test_in_a_group_only_the_paired_person_who_speaks_to_the_bot_is_answered(shared: Chatting) -> None:
    shared.pair()
    group = -500
    shared.bot.say(plan_text([], say="Not asked."), 7, group)
    shared.bot.say(f"@annabelle_bot {plan_text([], say='A stranger.')}", 66, group)
    answer = plan_text([], say="Asked.")
    shared.bot.say(answer, 7, group, reply_to_message={"message_id": 1, "from": {"id": 1000}})
    shared.wait_for_text("Asked.", group)
    assert shared.bot.texts(group) == ["Asked."]


@pytest.mark.req("CHN-03")
def test_garbage_is_skipped(shared: Chatting) -> None:
    shared.pair()
    for garbage in ({}, {"message": 5}, {"message": {}}, {"callback_query": {"id": "x"}}, {"message": {"from": None}}):
        shared.bot.put(json.loads(json.dumps(garbage)))
    shared.ask(plan_text([], say="Still here."), "Still here.")


@pytest.mark.req("CHN-02")
def test_an_account_that_was_taken_back_is_a_stranger_again(shared: Chatting) -> None:
    shared.pair()
    assert shared.hub.http.post("/channels/telegram/accounts/7/delete", json={}).is_success
    before, ignored = len(shared.bot.texts()), shared.ignored()
    shared.bot.say(plan_text([], say="Hello?"))
    wait_for(lambda: shared.ignored() > ignored, "an ignored message")
    assert len(shared.bot.texts()) == before


@pytest.mark.req("CMD-01", "CMD-02")
def test_commands_are_answered_in_the_chat_at_no_cost_and_a_stopped_channel_still_takes_them(
    shared: Chatting,
) -> None:
    shared.pair()
    shared.ask("/help", "/status")
    shared.ask("/kill telegram", "telegram")
    shared.bot.say(plan_text([], say="Held back."))
    shared.ask("/status", "telegram")
    assert "Held back." not in shared.bot.texts()
    shared.bot.say("/resume telegram")
    shared.wait_for_text("Held back.")
    costs = shared.hub.http.get("/costs").json()
    assert costs is not None


@pytest.mark.req("CMD-04")
def test_messages_are_removed_from_the_chat_after_a_yes(shared: Chatting) -> None:
    shared.pair()
    shared.ask(plan_text([], say="Soon gone."), "Soon gone.")
    shared.bot.say("/delete messages today")
    offered = wait_for(lambda: [one for one in shared.bot.sent if one.buttons] or None, "a question")[-1]
    assert "Soon gone." in shared.bot.texts()
    shared.bot.press(offered, offered.buttons[0][0])
    wait_for(lambda: "Soon gone." not in shared.bot.texts(), "the removal")


@pytest.mark.req("POL-03", "CHN-01")
def test_a_pressed_yes_lets_the_turn_go_on_and_a_second_press_changes_nothing(shared: Chatting) -> None:
    shared.pair()
    shared.pair(8)
    skill = {"name": "Look", "instructions": "Look around.", "trigger_type": "manual"}
    shared.bot.say(plan_text([("memory_store_skill", skill)], say="It is set up."))
    question = shared.wait_for_text("May I call")
    shared.bot.press(question, "Yes", sender=66)
    shared.bot.press(question, "Yes")
    shared.bot.press(question, "No")
    shared.wait_for_text("It is set up.")
    assert shared.hub.http.get("/skills/Look").is_success
