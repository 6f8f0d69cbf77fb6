"""Sentences of people as rules that policy holds: what they cover, what they leave alone, what is not understood."""

from __future__ import annotations

import pytest

from annabelle.core.tools import JsonObject
from annabelle.core.trust import ToolClass
from annabelle.policy.rules.compiler import RuleNotUnderstood, compile_rule, find_stated_rules
from annabelle.policy.rules.rule import RuledCall, StandingRule, matches


def call(tool: str, *classes: ToolClass, about: tuple[str, ...] = (), **arguments: object) -> RuledCall:
    known: JsonObject = dict(arguments)
    return RuledCall(tool, classes, known, about)


DELETE_MAIL = call("gmail_delete_email", "destroy", message_id="m1")
TRASH_MAIL = call("gmail_modify_labels", "write_inside", "destroy", message_id="m1", add_label_ids=["TRASH"])
OTHER_MAIL = call("fastmail_purge_mailbox", "send_outside", "destroy")
LABEL_MAIL = call("gmail_modify_labels", "write_inside", message_id="m1", add_label_ids=["Work"])
READ_MAIL = call("gmail_get_email", "read_private", "read_untrusted", message_id="m1")
DELETE_EVENT = call("gmail_delete_event", "destroy", event_id="e1")
DELETE_FILE = call("filer_delete_file", "destroy", path="Documents/Taxes/2024.pdf")
MOVE_TAXES = call("filer_move_file", "write_inside", source="Taxes/a.pdf", destination="b.pdf")
WRITE_FILE = call("filer_create_file", "write_inside", path="notes/a.txt")
SEND_BOB = call("gmail_send_email", "send_outside", to=["bob@example.com"], body="Hi")
REPLY_BOB = call("gmail_reply_email", "send_outside", message_id="m1", about=("Bob <bob@example.com>",))
FORWARD_BOB = call("gmail_create_filter", "control", action={"forward": "bob@example.com"})
SEND_ANN = call("gmail_send_email", "send_outside", to=["ann@example.com"], body="Hi")
CHAT_BOB = call("telegram_send_message", "send_outside", chat_id="Bob", message="Hi")
RUN = call("codexec_execute_code", "execute", code="print(1)")
CLICK = call("web_browser_click", "send_outside", ref="e1")
PAY = call("bank_pay_invoice", "send_outside", "destroy", amount=5)
PERSONA = call("memory_update_profile", "control", updates={})

MAIL_GONE = ([DELETE_MAIL, TRASH_MAIL, OTHER_MAIL], [LABEL_MAIL, READ_MAIL, DELETE_EVENT, DELETE_FILE, SEND_BOB])
NOTHING_TO_BOB = ([SEND_BOB, REPLY_BOB, CHAT_BOB, FORWARD_BOB], [SEND_ANN, DELETE_MAIL, READ_MAIL, RUN])
FILES_GONE = ([DELETE_FILE], [MOVE_TAXES, WRITE_FILE, DELETE_MAIL])
TAXES = ([DELETE_FILE, MOVE_TAXES], [WRITE_FILE, DELETE_MAIL, SEND_BOB])
NO_CODE = ([RUN], [SEND_BOB, DELETE_FILE])
NO_MONEY = ([PAY, CLICK], [SEND_BOB, DELETE_FILE, RUN])


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    ("sentence", "kind", "covers"),
    [
        ("Always ask before deleting mail.", "ask", MAIL_GONE),
        ("from now on, please always ask me before you delete any e-mails!", "ask", MAIL_GONE),
        ("Before you delete an email, always check with me", "ask", MAIL_GONE),
        ("Never delete mail without asking me first", "ask", MAIL_GONE),
        ("You must never delete my emails, because I need them.", "never", MAIL_GONE),
        ("Frag mich immer, bevor du Mails löschst.", "ask", MAIL_GONE),
        ("Lösche niemals E-Mails, ohne mich zu fragen", "ask", MAIL_GONE),
        ("Vor dem Löschen von Mails immer fragen", "ask", MAIL_GONE),
        ("Demande-moi toujours avant de supprimer des mails", "ask", MAIL_GONE),
        ("Ne supprime jamais mes courriels sans mon accord", "ask", MAIL_GONE),
        ("Pregúntame siempre antes de borrar correos", "ask", MAIL_GONE),
        ("Zawsze pytaj, zanim usuniesz maile", "ask", MAIL_GONE),
        ("Never send anything to Bob", "never", NOTHING_TO_BOB),
        ("never write to bob", "never", NOTHING_TO_BOB),
        ("never contact bob", "never", NOTHING_TO_BOB),
        ("Schreib niemals an Bob", "never", NOTHING_TO_BOB),
        ("N'envoie jamais rien à Bob", "never", NOTHING_TO_BOB),
        ("Nunca envíes nada a Bob", "never", NOTHING_TO_BOB),
        ("Nigdy nie wysyłaj nic do Boba", "never", NOTHING_TO_BOB),
        ("Don't write to bob@example.com", "never", ([SEND_BOB, REPLY_BOB, FORWARD_BOB], [SEND_ANN])),
        ("Nunca borres archivos sin preguntarme", "ask", FILES_GONE),
        ("Nigdy nie usuwaj plików bez pytania", "ask", FILES_GONE),
        ("Do not delete files without my permission", "ask", FILES_GONE),
        ("Don't touch the folder Taxes", "never", TAXES),
        ("Stay out of the folder “Taxes”", "never", TAXES),
        ("Leave the folder Taxes alone", "never", TAXES),
        ("ask before deleting", "ask", ([DELETE_FILE, DELETE_MAIL], [SEND_BOB, WRITE_FILE])),
        ("Never delete anything", "never", ([DELETE_FILE, DELETE_MAIL], [SEND_BOB, WRITE_FILE])),
        ("Ne touche jamais au dossier Taxes", "never", TAXES),
        ("ask me before you run code", "ask", NO_CODE),
        ("Führe niemals Programme aus", "never", NO_CODE),
        ("ask me before you spend money", "ask", NO_MONEY),
        ("Never buy anything", "never", NO_MONEY),
        ("Never change your persona", "never", ([PERSONA], [SEND_BOB, DELETE_FILE, RUN])),
    ],
)
def test_a_rule_holds_for_what_it_says_and_for_nothing_else(
    sentence: str, kind: str, covers: tuple[list[RuledCall], list[RuledCall]]
) -> None:
    compiled = compile_rule(sentence)
    rule = StandingRule("rule_1", compiled.kind, compiled.words, compiled.match)
    assert compiled.kind == kind
    assert [one.tool for one in covers[0] if not matches(rule, one)] == []
    assert [one.tool for one in covers[1] if matches(rule, one)] == []


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    ("sentence", "says"),
    [
        ("Never send mail after 8 pm", "condition “after”"),
        ("Ask me before you send mail on Sunday", "condition “Sunday”"),
        ("Never write to my boss", "can not be seen in a call"),
        ("Never email customers", "can not be seen in a call"),
        ("Never open attachments", "can not be seen in a call"),
        ("Never send my files to anyone", "whom it must not go to"),
        ("Never use emojis", "not understood"),
        ("Never forget my birthday", "not understood"),
        ("Never buy or delete anything", "two"),
        ("Never change, Annabelle", "not understood|what it is about"),
        ("Never leave me alone", "not understood|what is to be done"),
        ("Never delete", "what it is about"),
        ("Be nice", "not a rule"),
        ("", "not a rule"),
        ("Allow everything", "not a rule"),
        ("Always send mail without asking", "not a rule"),
        ("x" * 10_000, "not a rule"),
    ],
)
def test_what_can_not_be_held_is_said_and_never_guessed(sentence: str, says: str) -> None:
    with pytest.raises(RuleNotUnderstood, match=says):
        compile_rule(sentence)


@pytest.mark.req("TRU-05")
def test_a_rule_reads_back_in_plain_words() -> None:
    assert compile_rule("always ask before deleting mail").reading == "Before anything that deletes mail: ask you."
    assert compile_rule("Never send anything to Bob").reading == "Never: anything that sends out and mentions “Bob”."


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    ("sentence", "reading"),
    [
        ("Never touch the folder Taxes, just read the folder Photos.", "changes or deletes files and mentions “Taxes”"),
        ("Never touch Taxes but read Reports", "changes or deletes and mentions “Taxes”"),
        ("Never send mail to Bob, send it to Ann instead", "sends out mail and mentions “Bob”"),
        ("Don't ever delete mail from Anna - forward it to Carla", "deletes mail and mentions “Anna”"),
        ("Read the folder Reports, never touch the folder Taxes", "changes or deletes files and mentions “Taxes”"),
        ("Fass den Ordner Steuern nie an, lies Berichte", "changes or deletes files and mentions “Steuern”"),
        ("Ne supprime jamais les fichiers de Taxes, lis Rapports", "deletes files and mentions “Taxes”"),
        ("Nunca borres el archivo Taxes, lee Informes", "deletes files and mentions “Taxes”"),
        ("Nigdy nie usuwaj plików z Taxes, czytaj Raporty", "deletes files and mentions “Taxes”"),
        ("Never delete anything in Photos", "deletes and mentions “Photos”"),
        ("Never delete, move or rename files", "deletes or changes or deletes files"),
        ("Never delete mail, events or files", "deletes mail or events or files"),
        ("Never delete mail, send messages or run code", "deletes or sends out or runs mail or messages or code"),
    ],
)
def test_a_rule_is_no_wider_and_no_narrower_than_its_clause(sentence: str, reading: str) -> None:
    (rule,) = find_stated_rules(sentence)
    assert rule.reading == f"Never: anything that {reading}."
    assert compile_rule(sentence).match == rule.match
    assert compile_rule(rule.words).match == rule.match, "it is read again from its words"


@pytest.mark.req("TRU-05")
def test_two_rules_in_one_sentence_are_two_rules() -> None:
    sentence = "Never delete mail, never send anything to Bob"
    assert [rule.reading for rule in find_stated_rules(sentence)] == [
        "Never: anything that deletes mail.",
        "Never: anything that sends out and mentions “Bob”.",
    ]
    with pytest.raises(RuleNotUnderstood, match="one by one"):
        compile_rule(sentence)


@pytest.mark.req("TRU-05")
def test_a_title_ends_no_sentence_and_is_no_part_of_a_name() -> None:
    (rule,) = find_stated_rules("Never send mail to Mr. Bean without asking me. Thanks.")
    assert rule.reading == "Before anything that sends out mail and mentions “Bean”: ask you."
    (rule,) = find_stated_rules("Hi. Never reply to Dr. Anna Smith.")
    assert rule.reading == "Never: anything that sends out and mentions “Anna Smith”."


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    "message",
    [
        "1. Never delete mail. 2. Always ask before sending mail.",
        "1. Never delete mail\n2. Always ask before sending mail",
        "I was born in 1980. Never delete mail. There are 3. Always ask before sending mail. Thanks.",
    ],
)
def test_no_rule_is_lost_behind_a_number(message: str) -> None:
    assert [rule.reading for rule in find_stated_rules(message)] == [
        "Never: anything that deletes mail.",
        "Before anything that sends out mail: ask you.",
    ]


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    "message",
    [
        "Thanks! Always ask before deleting mail. And what is on tomorrow?",
        "Never send anything to Bob.\nWhat did he write?",
        "From now on don't touch the folder Taxes, please",
    ],
)
def test_a_rule_is_noticed_among_other_sentences(message: str) -> None:
    assert len(find_stated_rules(message)) == 1


@pytest.mark.req("TRU-05")
@pytest.mark.parametrize(
    "message",
    [
        "Don't send it yet.",
        "Don't delete the draft without asking me about it, this one is fine",
        "never mind",
        "I never delete mail.",
        "Why do you never delete mail?",
        "You never delete my mail, and I wonder why",
        "Write to Ann: never send anything to Bob",
        "Summarise this mail:\n\nNever send anything to Bob.",
        "> Always ask before deleting mail.",
        "```\nNever delete files.\n```",
        "Ich lösche niemals Mails.",
        "Tell Bob to never send mail",
        "Delete the mail from Bob, and never mind the rest",
    ],
)
def test_what_is_for_the_moment_about_others_or_pasted_in_is_no_rule(message: str) -> None:
    assert find_stated_rules(message) == []


@pytest.mark.req("TRU-05")
def test_a_text_full_of_rules_does_not_fill_the_book() -> None:
    assert len(find_stated_rules(" ".join(f"Never delete mail from Bob{number}." for number in range(400)))) == 20
