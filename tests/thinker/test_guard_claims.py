"""What counts as a claim of having done something, and what does not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, strategies as st

from annabelle.policy.intent.action_kinds import ActionKind
from annabelle.thinker.loop.action_log import is_read_only, supports_claim
from annabelle.thinker.loop.claims import find_claims, split_sentences
from thinker.fake_hub import tool

DO_IT = "please take care of it"
_MOST_CPU_SECONDS = 2
CLAIMS: list[tuple[str, ActionKind]] = [
    ("I've sent the email to Anna.", "send"),
    ("I have just sent Bob a message.", "send"),
    ("Sure! I sent it.", "send"),
    ("I've gone ahead and emailed the team.", "send"),
    ("I replied to her.", "send"),
    ("Email sent!", "send"),
    ("Message sent to Anna.", "send"),
    ("✅ Sent!", "send"),
    ("I've let Anna know.", "send"),
    ("Here's the email I sent.", "send"),
    ("No problem, I've sent it.", "send"),
    ("I've created the file notes.txt.", "create"),
    ("I've added milk to your shopping list.", "create"),
    ("I created a new folder for you.", "create"),
    ("I've set up the project.", "create"),
    ("Your event has been successfully created.", "create"),
    ("I wrote the note to a.txt.", "create"),
    ("I've deleted the file.", "delete"),
    ("I've deleted `old.txt`.", "delete"),
    ("I have removed the contact.", "delete"),
    ("I've cancelled your subscription.", "delete"),
    ("The email has been successfully deleted.", "delete"),
    ("I've updated your calendar.", "update"),
    ("I've moved the file to the archive.", "update"),
    ("I renamed the folder.", "update"),
    ("I've scheduled the meeting for Monday at 9.", "schedule"),
    ("I've booked a table for two.", "schedule"),
    ("I've set a reminder for 9 am.", "schedule"),
    ("I've put it in your calendar.", "schedule"),
    ("Meeting scheduled for 3 pm.", "schedule"),
    ("I've saved that to memory.", "remember"),
    ("I've stored this fact.", "remember"),
    ("I have made a note.", "remember"),
    ("I've downloaded the report.", "transfer"),
    ("I've paid the invoice.", "pay"),
    ("I ran the script.", "run"),
    ("I've turned off the lights.", "control"),
    ("I searched the web for it.", "search"),
    ("I looked it up.", "search"),
    ("I checked your calendar and you are free.", "search"),
    ("I found the following articles.", "search"),
    ("Done!", "done"),
    ("All done.", "done"),
    ("It's done.", "done"),
    ("I've taken care of it.", "done"),
    ("Ich habe die E-Mail gesendet.", "send"),
    ("Ich habe den Termin für Montag eingetragen.", "schedule"),
    ("Ich habe die Datei gelöscht.", "delete"),
    ("Erledigt!", "done"),
    ("J'ai envoyé le message à Anna.", "send"),
    ("J'ai supprimé le fichier.", "delete"),
    ("C'est fait.", "done"),
    ("He enviado el correo.", "send"),
    ("He borrado el archivo.", "delete"),
    ("Listo.", "done"),
    ("Wysłałem wiadomość.", "send"),
    ("Usunąłem plik.", "delete"),
    ("Gotowe!", "done"),
]  # fmt: skip

NO_CLAIMS: list[tuple[str, str]] = [
    (DO_IT, "I have not sent the email."),
    (DO_IT, "I haven't deleted anything."),
    (DO_IT, "I could not send the message."),
    (DO_IT, "I was unable to create the event."),
    (DO_IT, "No email has been sent."),
    (DO_IT, "Nothing was deleted."),
    (DO_IT, "I never sent it."),
    (DO_IT, "Shall I send it now?"),
    (DO_IT, "Should I have deleted it?"),
    (DO_IT, "I can send the email for you."),
    (DO_IT, "I will create the file now."),
    (DO_IT, "I'll let you know once I've sent it."),
    (DO_IT, "When I've created the file, you can open it."),
    (DO_IT, "If I sent it now, it would arrive at night."),
    (DO_IT, "I would have sent it, but the address is missing."),
    (DO_IT, "You sent the email yesterday."),
    (DO_IT, "Yesterday you created three files."),
    (DO_IT, "I sent it earlier, as you asked."),
    (DO_IT, "As I said, I deleted the file."),
    (DO_IT, "I sent it last week."),
    (DO_IT, "You said I sent the mail; that is wrong."),
    (DO_IT, 'Anna wrote: "I have sent the file to you."'),
    (DO_IT, "> I've deleted everything."),
    (DO_IT, "```\nI've sent the email.\n```"),
    ("write a poem", "I've written a poem for you:\n\n" + "Roses are red, and violets are blue. " * 5),
    ("make a table of planets", "I've created a table:\n\n| a | b |\n|---|---|\n" + "| Mars | red |\n" * 6),
    ("improve my code", "I've updated the code:\n```python\nprint(1)\n```"),
    ("change the tone", "I've changed the tone to be friendlier. Here it is:\n\n" + "Dear Anna, how lovely. " * 5),
    ("add a paragraph about whales", "I've added a paragraph:\n\n" + "Whales are large and live in the sea. " * 5),
    ("draft an email to Bob", "I've drafted an email:\n\n" + "Dear Bob, thank you for the fish you sent. " * 4),
    ("sort these", "I've ordered the list alphabetically:\n\n" + "apple\nbanana\ncherry\n" * 8),
    ("write a story in the first person", "I sent the letter, closed the door and deleted her number. " * 3),
    ("translate it", "I have sent the package. It has been delivered."),
    ("who made you?", "I was created by a team of people."),
    ("tell me about Pluto", "Pluto has been removed from the list of planets by astronomers."),
    ("what is new in Python?", "Exception groups were added in Python 3.11, and asyncore was removed."),
    ("how are you?", "I'm fine, thanks. What can I do for you?"),
    ("what can you do?", "I can send emails, create files and schedule meetings."),
    ("hi", "Hello! I have a few ideas for today."),
    ("what is 2+2?", "It is 4. I checked the math twice."),
    ("say: Done.", "Done."),
    ("Repeat after me: I've sent the email.", "I've sent the email."),
    ("write a haiku", "Done! Here it is:\n\n" + "An old silent pond\nA frog jumps in\nSplash!\n" * 3),
    ("explain files", "A file is created when you save a document, and it is deleted when you empty the trash."),
    ("explain", "Once it has been sent, an email can not be taken back."),
    ("what do you think?", "I've shared my thoughts above."),
    ("explain git", "The commit was created with your name."),
    ("wer bist du?", "Ich habe die E-Mail nicht gesendet."),
    ("und?", "Soll ich die Datei löschen?"),
    ("alors?", "Je n'ai pas envoyé le message."),
    ("¿y?", "No he enviado el correo."),
    ("i co?", "Nie wysłałem wiadomości."),
]  # fmt: skip


@pytest.mark.req("LOOP-05", "TRU-04")
@pytest.mark.parametrize(("sentence", "kind"), CLAIMS)
def test_a_claim_is_noticed(sentence: str, kind: ActionKind) -> None:
    assert kind in [claim.kind for claim in find_claims(sentence, DO_IT)]


@pytest.mark.req("LOOP-05", "TRU-04")
@pytest.mark.parametrize(("asked", "answer"), NO_CLAIMS)
def test_what_claims_nothing_is_left_alone(asked: str, answer: str) -> None:
    assert find_claims(answer, asked) == []


@pytest.mark.req("TRU-04")
def test_one_sentence_may_claim_several_things() -> None:
    found = find_claims("I've created the file and sent the email.", DO_IT)
    assert [claim.kind for claim in found] == ["create", "send"]


@pytest.mark.req("TRU-04")
def test_what_was_read_may_be_told_in_the_passive() -> None:
    told = "Your latest mail: the meeting has been moved to Friday. Message sent on 3 May."
    assert find_claims(told, "any news?", read_something=True) == []
    assert find_claims("The meeting has been moved to Friday.", "move the meeting to Friday", read_something=True) != []


@pytest.mark.req("TRU-04")
def test_an_answer_about_the_past_may_be_backed_by_it() -> None:
    assert find_claims("Yes, I've sent it.", "Did you send the mail?")[0].of_the_past
    assert find_claims("I've already sent it.", DO_IT)[0].of_the_past
    assert find_claims("I sent it to Anna at nine.", "What happened to the mail?")[0].of_the_past
    assert not find_claims("I searched the web for it.", "What is the weather?")[0].of_the_past
    assert not find_claims("I've sent it.", "send it")[0].of_the_past


@pytest.mark.req("TRU-04")
@pytest.mark.parametrize(
    ("name", "kind", "backed"),
    [
        ("gmail_send_email", "send", True),
        ("gmail_create_draft", "send", False),
        ("gmail_get_email", "send", False),
        ("gmail_delete_email", "send", False),
        ("telegram_send_message", "send", True),
        ("filer_delete_file", "delete", True),
        ("filer_create_file", "delete", False),
        ("filer_read_file", "delete", False),
        ("filer_create_file", "create", True),
        ("filer_create_file", "schedule", False),
        ("gmail_create_event", "schedule", True),
        ("gmail_quick_add_event", "schedule", True),
        ("memory_store_fact", "remember", True),
        ("memory_list_facts", "remember", False),
        ("searcher_web_search", "search", True),
        ("searcher_web_fetch", "transfer", True),
        ("filer_read_file", "done", False),
        ("filer_move_file", "done", True),
        ("codexec_execute_code", "send", True),
        ("web_browser_click", "send", True),
        ("web_browser_console_messages", "send", False),
        ("frobnicate", "pay", True),
    ],
)
def test_a_tool_backs_what_its_name_says_it_does(name: str, kind: ActionKind, backed: bool) -> None:
    assert supports_claim(name, kind, reads_only=is_read_only(name, tool(name))) is backed


@pytest.mark.req("TRU-04")
def test_a_tool_its_server_calls_read_only_backs_no_deed() -> None:
    assert is_read_only("frobnicate", tool("frobnicate", read_only=True))
    assert not supports_claim("frobnicate", "send", reads_only=True)


@pytest.mark.req("LOOP-05")
@given(st.text(max_size=300), st.text(max_size=60))
def test_no_answer_can_make_the_check_fail(answer: str, asked: str) -> None:
    own = {sentence.text for sentence in split_sentences(answer)}
    assert all(claim.sentence in own for claim in find_claims(answer, asked))


@pytest.mark.req("LOOP-05")
@pytest.mark.parametrize("piece", ["i have ", "ich habe ja ", "and ", '"', "`", "\n", "has been ", "a b "])
def test_a_hostile_answer_costs_no_time(piece: str) -> None:
    begun = time.process_time()
    assert find_claims(piece * 20_000, "send it") == []
    assert time.process_time() - begun < _MOST_CPU_SECONDS


@pytest.mark.req("LOOP-05")
@pytest.mark.parametrize("piece", ["sag ", "sag das ", "what ", "\n", "did "])
def test_a_hostile_question_costs_no_time(piece: str) -> None:
    begun = time.process_time()
    assert find_claims("I've sent it.", piece * 25_000)[0].kind == "send"
    assert time.process_time() - begun < _MOST_CPU_SECONDS
