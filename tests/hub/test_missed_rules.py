"""A sentence that was meant as a rule and is none is not passed over in silence; an ordinary one is."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import Connection

from annabelle.core.messages import InboundMessage
from annabelle.core.tools import JsonObject
from annabelle.hub.conversations.event_log import EventFanout, EventLog, WriteResult
from annabelle.hub.trust.rules import RuleOrigin, StandingRules, find_missed_rules
from annabelle.store import messages, threads
from annabelle.store.database import Database, sqlite_url
from annabelle.store.messages import QueueLimits


class Unheard:
    def note(self, kind: str, facts: JsonObject, trace_id: str | None = None) -> None: ...


@pytest.mark.req("TRU-05")
async def test_the_person_is_told_that_a_sentence_is_no_rule_and_how_to_write_one(tmp_path: Path) -> None:
    database = await Database.open(sqlite_url(tmp_path / "annabelle.db"), backups=tmp_path)
    standing = StandingRules(database, log := EventLog(database, EventFanout()), Unheard())
    text = "Hello. I never eat meat. Never send mail after 8 pm. Always ask before deleting files."
    message = InboundMessage(channel="cli", chat_id="main", sender_id="ada", text=text)

    def store(conn: Connection) -> WriteResult[None]:
        thread = threads.find_or_create_thread(
            conn, channel="cli", chat_id="main", user_id="owner", agent_id="annabelle"
        )
        messages.queue_message(conn, thread, message, QueueLimits())
        return WriteResult(
            None, "owner", standing.add_stated_rules(conn, message, RuleOrigin("owner", thread.id, message.id))
        )

    await log.transact(store)
    told = await database.read(lambda conn: threads.list_message_events(conn, message.id, "owner"))
    assert [rule.words for rule in await standing.listing("owner")] == ["Always ask before deleting files."]
    await database.close()
    assert [event.type for event in told] == ["notice", "notice"]
    missed = str(told[1].data["text"])
    assert missed.startswith(
        "Not taken as a rule, so nothing of it holds: “Never send mail after 8 pm.” (The condition"
    )
    assert 'annabelle rules add "always ask before deleting mail"' in missed


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    "sentence",
    [
        "Always ask before sending mail after 8 pm",
        "Always ask me before anything drastic",
        "Always ask me when you delete mail",
        "Ask me before you book flights over 50 euros",
        "Ask me before you frobnicate the mailbox",
        "Never reply to my boss",
        "Never send more than 50 euros",
        "Never share my location",
        "From now on, don't open links",
        "Lösche nie Mails ohne Anhang",
        "Frag mich immer, wenn du Mails löschst",
        "Ne réponds jamais à mon chef",
        "Nunca envíes correos después de las 8",
        "Nigdy nie wysyłaj maili po 20",
    ],
)
def test_what_sounds_like_a_rule_and_is_not_understood_is_found(sentence: str) -> None:
    (missed,) = find_missed_rules(f"Hi! {sentence}. Thanks.")
    assert missed.words.removesuffix(" Thanks.") == f"{sentence}."  # behind a number a date may go on


@pytest.mark.req("TRU-05")
def test_a_date_does_not_end_a_sentence_and_a_rule_beside_it_is_not_called_missed() -> None:
    (dated,) = find_missed_rules("Antworte nie meinem Chef vor dem 3. Mai.")
    assert dated.words == "Antworte nie meinem Chef vor dem 3. Mai."
    (missed,) = find_missed_rules("Always ask before deleting mail from 2024. Never reply to my boss.")
    assert missed.words == "Never reply to my boss."
    assert find_missed_rules("Never reply to Dr. Anna Smith. Thanks.") == []


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    "message",
    [
        "Always ask before deleting mail.",
        "I never eat meat.",
        "Never mind, I will send it myself.",
        "Never been to Paris. Never sent a mail to my boss. Never read such a good book.",
        "My boss never replies to mail. He never pays. It never rains here.",
        "Never run before breakfast. Never open the oven while baking. Never forget to buy milk. Never give up!",
        "Ask me before dinner. Always ask me about my day.",
        "I always ask before I send mail after 8 pm.",
        "Don't send it yet. Don't delete anything before I am back.",
        "Why do you never reply to my boss?",
        "Mein Chef antwortet nie. So etwas würde ich nie kaufen. Das Paket kam nie an.",
        "Mon chef ne répond jamais. Nunca he enviado dinero. Nigdy nie pisałem do szefa.",
        "Translate into German: Never reply to my boss.",
        "> Never reply to my boss.",
        "Bob wrote: never send mail after 8 pm",
    ],
)
def test_ordinary_sentences_and_what_others_say_raise_no_alarm(message: str) -> None:
    assert find_missed_rules(message) == []


@pytest.mark.req("TRU-05")
def test_a_page_of_such_sentences_is_not_told_line_by_line() -> None:
    assert len(find_missed_rules("Never reply to my boss.\n" * 50)) == 3
