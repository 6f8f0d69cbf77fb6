"""What is not as it should be: nothing is lost, nobody is held up, and it is said what happened."""

from __future__ import annotations

import html
import json
import re
import time
from typing import Any

import pytest

from annabelle.hub.security.users_file import add_user, remove_user
from channels.conftest import Chatting
from hub.hubs import wait_for
from support.scripted_model import plan_text

Refusal = tuple[int, dict[str, Any]]


@pytest.mark.req("CHN-03")
@pytest.mark.parametrize(
    "garbage",
    [{"text": "x", "reply_to_message": "abc"}, {"text": "x", "reply_to_message": [1]}, {"document": "abc"}],
    ids=json.dumps,
)
def test_an_update_with_a_field_of_the_wrong_type_is_skipped(shared: Chatting, garbage: dict[str, object]) -> None:
    shared.pair()
    shared.bot.say("", **{"text": None, **garbage})
    shared.ask(plan_text([], say="Still here."), "Still here.")


@pytest.mark.req("CHN-01")
def test_a_file_whose_name_is_too_long_for_the_disk_is_kept_under_a_shorter_one(shared: Chatting) -> None:
    shared.pair()
    shared.bot.files["f1"] = b"content"
    document = {"file_id": "f1", "file_name": "漢" * 120 + ".txt"}
    shared.bot.say("", document=document, text=None, caption=plan_text([], say="Got it."))
    shared.wait_for_text("Got it.")
    (kept,) = (shared.hub.home.workspace / "received").iterdir()
    assert kept.read_bytes() == b"content"
    assert kept.suffix == ".txt"


@pytest.mark.req("CHN-01")
def test_a_message_that_cannot_be_read_is_named_and_the_next_one_is_answered(shared: Chatting) -> None:
    shared.pair()
    (shared.hub.home.workspace / "received").write_text("a file where a folder should be")
    shared.bot.files["f1"] = b"content"
    shared.bot.say("", document={"file_id": "f1", "file_name": "a.txt"}, text=None)
    shared.ask(plan_text([], say="Still here."), "Still here.")
    shared.wait_for_text("I cannot read that message.")
    (shared.hub.home.workspace / "received").unlink()


@pytest.mark.req("CHN-01")
def test_pictures_of_an_album_are_all_kept(shared: Chatting) -> None:
    shared.pair()
    at = int(time.time())
    for picture in ("one", "two", "three"):
        shared.bot.files[picture] = picture.encode()
        caption = plan_text([], say=f"Got {picture}.")
        shared.bot.say("", text=None, photo=[{"file_id": picture}], date=at, caption=caption)
    shared.wait_for_text("Got three.")
    kept = {one.read_bytes() for one in (shared.hub.home.workspace / "received").iterdir()}
    assert kept == {b"one", b"two", b"three"}


@pytest.mark.req("CHN-04")
def test_a_file_that_cannot_be_fetched_at_once_is_fetched_later(shared: Chatting) -> None:
    shared.pair()
    shared.bot.files["f1"] = b"content"
    refusals = iter([(502, {"ok": False, "description": "Bad Gateway"})] * 2)
    shared.bot.refuse = lambda method, _given: next(refusals, None) if method == "getFile" else None
    shared.bot.say("", document={"file_id": "f1"}, text=None, caption=plan_text([], say="Got it."))
    shared.wait_for_text("Got it.")
    (kept,) = (shared.hub.home.workspace / "received").iterdir()
    assert kept.read_bytes() == b"content"


@pytest.mark.req("CHN-02")
def test_what_an_account_said_before_it_was_taken_back_is_not_answered_afterwards(shared: Chatting) -> None:
    shared.pair()
    shared.pair(8)
    shared.ask("/kill telegram", "/resume telegram")
    shared.bot.say(plan_text([], say="Too late."), 8)
    shared.ask("/status", "Annabelle")  # read after what was written before it
    shared.hub.http.post("/channels/telegram/accounts/8/delete", json={}).raise_for_status()
    shared.ask("/resume telegram", "goes on")
    shared.ask(plan_text([], say="Here."), "Here.")
    assert "Too late." not in shared.bot.texts(8)


def refuse_what_telegram_refuses(method: str, given: dict[str, Any]) -> Refusal | None:
    """As the real one: it counts what is shown, in units of UTF-16."""
    if method != "sendMessage":
        return None
    shown = html.unescape(re.sub(r"<[^>]+>", "", given["text"]))
    if len(shown.encode("utf-16-le")) // 2 > 4096:
        return 400, {"ok": False, "description": "Bad Request: message is too long"}
    return None if shown.strip() else (400, {"ok": False, "description": "Bad Request: message text is empty"})


@pytest.mark.req("CHN-05")
@pytest.mark.parametrize(
    "line", ["😀" * 5000, "😀 " * 3000, f"```\n{'😀' * 5000}\n```"], ids=["signs", "words", "code"]
)
def test_a_long_answer_of_emoji_comes_whole(shared: Chatting, line: str) -> None:
    shared.pair()
    shared.bot.refuse = refuse_what_telegram_refuses
    shared.ask(plan_text([], say=f"{line}\n\nThe end."), "The end.")
    assert "".join(shared.bot.texts()).count("😀") == line.count("😀")


@pytest.mark.req("CHN-05")
def test_an_answer_that_shows_nothing_as_markdown_is_shown_as_it_is(shared: Chatting) -> None:
    shared.pair()
    shared.bot.refuse = refuse_what_telegram_refuses
    shared.ask(plan_text([], say="[1]: https://example.org"), "[1]: https://example.org")


def send_file(chatting: Chatting, name: str, say: str, **place: int) -> None:
    said = plan_text([("send_message", {"message": "Here it is.", "file": name})], say=say)
    chatting.bot.say(f"send me {name} {said}", **place)


@pytest.mark.req("CHN-01")
def test_a_file_answers_a_message_in_a_group(shared: Chatting) -> None:
    shared.pair()
    (shared.hub.home.workspace / "list.txt").write_text("milk")
    said = plan_text([("send_message", {"message": "Here it is.", "file": "list.txt"})], say="Done.")
    shared.bot.say(f"@annabelle_bot send me list.txt {said}", 7, -500)
    sent = wait_for(lambda: [given for name, given in shared.bot.calls if name == "sendDocument"], "a file")
    assert json.loads(sent[0]["reply_parameters"])["allow_sending_without_reply"] is True


@pytest.mark.req("CHN-01", "TRU-02")
def test_a_file_that_is_gone_when_it_is_to_be_sent_is_named(shared: Chatting) -> None:
    shared.pair()
    file = shared.hub.home.workspace / "list.txt"
    file.write_text("milk")

    def delete_first(method: str, given: dict[str, Any]) -> Refusal | None:
        if method == "sendMessage" and "Here it is." in given["text"]:
            file.unlink(missing_ok=True)
        return None

    shared.bot.refuse = delete_first
    send_file(shared, "list.txt", "Done.")
    shared.wait_for_text("list.txt cannot be read")
    assert not any("not certain" in text for text in shared.bot.texts())


@pytest.mark.req("CHN-01")
@pytest.mark.parametrize("name", ["a\0b", "x" * 300], ids=["nul", "long"])
def test_a_name_that_no_file_can_have_is_a_file_that_is_not_there(shared: Chatting, name: str) -> None:
    shared.pair()
    send_file(shared, name, "{result}")
    assert "There is no file" in shared.wait_for_text("ERROR").text


@pytest.mark.req("CHN-02")
def test_a_person_who_was_let_out_of_the_home_is_a_stranger_in_chat_apps_too(shared: Chatting) -> None:
    shared.pair()
    add_user(shared.hub.home.users_file, "bob")
    shared.pair(8, "bob")
    remove_user(shared.hub.home.users_file, "bob")
    before = len(shared.bot.texts(8))
    shared.bot.say(plan_text([], say="Hello?"), 8)
    shared.bot.say("/status", 8)
    shared.ask(plan_text([], say="Here."), "Here.")
    assert len(shared.bot.texts(8)) == before
    assert shared.hub.http.post("/channels/telegram/accounts/8/delete", json={}).is_success


@pytest.mark.req("POL-05")
def test_a_question_that_was_answered_before_it_could_be_sent_has_no_buttons(shared: Chatting) -> None:
    shared.pair()
    busy = (429, {"ok": False, "description": "Too Many Requests", "parameters": {"retry_after": 1}})
    shared.bot.refuse = lambda _method, given: busy if "May I call" in str(given) else None
    skill = {"name": "Look", "instructions": "Look around.", "trigger_type": "manual"}
    shared.bot.say(plan_text([("memory_store_skill", skill)], say="It is set up."))
    wait_for(lambda: any("May I call" in str(given) for _, given in list(shared.bot.calls)), "an attempt to ask")
    shared.answer("approve")
    shared.bot.refuse = lambda _method, _given: None
    question = shared.wait_for_text("May I call")
    assert question.buttons == []
    # What became of it is written below it soon after.
    said = [given["text"] for method, given in shared.bot.calls if method == "sendMessage"]
    *_, first = (text for text in said if "May I call" in text)
    assert "This is not asked any more." in first
    assert "all of this: ." not in first


@pytest.mark.req("POL-05")
def test_buttons_go_away_also_if_the_channel_was_busy_when_the_question_was_answered(shared: Chatting) -> None:
    shared.pair()
    skill = {"name": "Look", "instructions": "Look around.", "trigger_type": "manual"}
    shared.bot.say(plan_text([("memory_store_skill", skill)], say="It is set up."))
    question = shared.wait_for_text("May I call")
    wait_soon = {"ok": False, "description": "Too Many Requests", "parameters": {"retry_after": "soon"}}
    refusals = iter([(429, wait_soon), (502, {"ok": False, "description": "Bad Gateway"})])
    shared.bot.refuse = lambda method, _given: next(refusals, None) if method == "editMessageText" else None
    shared.answer("deny")
    wait_for(lambda: not question.buttons, "no buttons")


@pytest.mark.req("CHN-01")
def test_notices_go_where_the_owner_paired_last_also_after_an_account_was_let_in_by_its_id(shared: Chatting) -> None:
    shared.pair()
    shared.hub.http.post("/channels/telegram/accounts", json={"accountId": "99"}).raise_for_status()
    shared.bot.say("/kill scheduler")
    shared.wait_for_text("Stopped: scheduler")


@pytest.mark.req("CHN-04")
def test_a_chat_that_asks_to_wait_is_left_alone_while_other_chats_go_on(shared: Chatting) -> None:
    shared.pair(70)
    shared.pair(8)
    busy = (429, {"ok": False, "description": "Too Many Requests", "parameters": {"retry_after": 300}})
    tried: list[str] = []

    def refuse(method: str, given: dict[str, Any]) -> Refusal | None:
        if method != "sendMessage" or str(given["chat_id"]) != "70":
            return None
        tried.append(given["text"])
        return busy

    shared.bot.refuse = refuse
    shared.bot.say("/help", 70)
    wait_for(lambda: tried, "an attempt")
    for number in range(3):
        shared.ask(plan_text([], say=f"Number {number}."), f"Number {number}.", 8)
    assert len(tried) == 1


@pytest.mark.req("POL-05")
def test_an_answer_to_a_question_of_somebody_else_names_no_command_of_the_terminal(shared: Chatting) -> None:
    shared.pair()
    assert shared.ask("/approve apr_nobodys", "There is no question").text == "There is no question apr_nobodys."


@pytest.mark.req("CHN-03", "CHN-04")
def test_another_bot_in_the_place_of_the_first_is_heard_from_its_first_message(chatting: Chatting) -> None:
    chatting.pair()
    for number in range(3):
        chatting.ask(plan_text([], say=f"Number {number}."), f"Number {number}.")
    chatting.hub.stop()
    chatting.bot.become(2000)
    chatting.hub.start()
    chatting.ask(plan_text([], say="From the other bot."), "From the other bot.")
