"""Looking at mail, in both kinds of mailbox."""

from __future__ import annotations

import pytest

from annabelle.core.errors import InvalidArguments, NotFound
from annabelle.servers.kit.call import Call, enter_call
from servers.mail_calendar.boxes import Box
from servers.mail_calendar.mails import INVITATION, mail


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_mails_are_listed_newest_first_and_in_pages(box: Box) -> None:
    for number in range(3):
        box.deliver(mail(f"Number {number}", f"Text {number}"))
    first = await box.call("list_emails", max_results=2)
    second = await box.call("list_emails", max_results=2, page_token=first.next_page_token)
    subjects = [line.subject for line in (*first.emails, *second.emails)]
    assert sorted(subjects) == ["Number 0", "Number 1", "Number 2"]
    assert len(first.emails) == 2
    assert second.next_page_token is None
    line = first.emails[0]
    assert line.sender == "Bob Bauer <bob@example.org>"
    assert line.unread
    assert "INBOX" in line.labels
    assert line.snippet.startswith("Text")
    assert line.date == "2026-11-14T09:00:00+00:00"


@pytest.mark.req("SRV-MAI", "POL-04")
async def test_a_list_tells_who_else_got_a_mail_and_who_would_get_an_answer(box: Box) -> None:
    box.deliver(mail("Hello", Cc="eve@example.org", Reply_To="mallory@evil.example"))
    line = await box.only()
    assert (line.cc, line.reply_to) == ("eve@example.org", "mallory@evil.example")


@pytest.mark.req("SRV-MAI")
async def test_an_answer_that_goes_to_the_writer_is_not_mentioned_in_a_list(box: Box) -> None:
    box.deliver(mail("Hello"))
    line = await box.only()
    assert (line.cc, line.reply_to) == (None, None)


QUERIES: dict[str, set[str]] = {
    "from:carol": {"Report"},
    "subject:lunch": {"Lunch"},
    "is:unread": {"Lunch", "Report"},
    "has:attachment": {"Report"},
    "quarterly": {"Report"},
    '"quarterly figures"': {"Report"},
    "-from:carol": {"Lunch"},
    "newer_than:2d": {"Lunch", "Report"},
    "in:sent": set(),
    "from:carol subject:lunch": set(),
}


@pytest.mark.req("SRV-MAI")
async def test_a_search_finds_what_it_asks_for(box: Box) -> None:
    box.deliver(mail("Lunch"))
    box.deliver(mail("Report", "The quarterly figures", sender="carol@example.org", files={"q3.csv": b"1,2"}))
    found = {query: (await box.call("list_emails", query=query)).emails for query in QUERIES}
    assert {query: {line.subject for line in lines} for query, lines in found.items()} == QUERIES


@pytest.mark.req("SRV-MAI")
async def test_labels_narrow_a_list(box: Box) -> None:
    box.deliver(mail("Lunch"))
    line = await box.only()
    await box.call("modify_labels", message_id=line.id, add_label_ids=["STARRED"])
    assert [one.id for one in (await box.call("list_emails", label_ids=["STARRED", "INBOX"])).emails] == [line.id]
    assert (await box.call("list_emails", label_ids=["SENT"])).emails == []
    with pytest.raises(NotFound, match="no label 'Nowhere'"):
        await box.call("list_emails", label_ids=["Nowhere"])


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_mail_is_read_whole_and_stays_unread(box: Box) -> None:
    box.deliver(
        mail(
            "Grüße aus Köln ✉",
            "Schöne Grüße,\nBob",
            sender='"Bäcker, Bob" <bob@example.org>',
            Cc="carol@example.org",
            Reply_To="office@example.org",
            files={"Übersicht.pdf": b"%PDF-1.4"},
        )
    )
    read = await box.call("get_email", message_id=(await box.only()).id)
    assert read.subject == "Grüße aus Köln ✉"
    assert read.sender == '"Bäcker, Bob" <bob@example.org>'
    assert (read.cc, read.reply_to) == ("carol@example.org", "office@example.org")
    assert read.body == "Schöne Grüße,\nBob"
    assert [(one.name, one.size) for one in read.attachments] == [("Übersicht.pdf", 8)]
    assert (await box.only()).unread


@pytest.mark.req("SRV-MAI")
async def test_a_mail_shows_what_it_invites_to(box: Box) -> None:
    box.deliver(mail("Invitation", "Please come.", invitation=INVITATION))
    read = await box.call("get_email", message_id=(await box.only()).id)
    assert read.body == "Please come."
    assert read.invitation.model_dump(exclude_none=True) == {
        "summary": "Budget talk",
        "start": "2026-12-01T09:00:00+00:00",
        "end": "2026-12-01T10:00:00+00:00",
        "organizer": "bob@example.org",
        "uid": "meeting-1@example.org",
        "location": "Room 4",
        "method": "REQUEST",
    }
    assert [one.content_type for one in read.attachments] == ["text/calendar"]


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_huge_mail_is_cut_and_its_rest_is_a_file(box: Box) -> None:
    box.deliver(mail("Long", "a line of text\n" * 200_000))
    read = await box.call("get_email", message_id=(await box.only()).id)
    assert len(read.body) == 20_000
    assert read.body_chars > 1_900_000
    assert (box.workspace / read.rest).read_text().startswith("a line of text")


@pytest.mark.req("SRV-MAI")
async def test_new_mail_is_told_once_it_is_cleared_and_to_each_agent(box: Box) -> None:
    box.deliver(mail("First"))
    assert [line.subject for line in (await box.call("get_new_emails")).emails] == ["First"]
    assert (await box.call("get_new_emails", clear="true")).count == 1
    assert (await box.call("get_new_emails")).count == 0
    box.deliver(mail("Second"))
    box.deliver(mail("Third"))
    assert [line.subject for line in (await box.call("get_new_emails", clear=False)).emails] == ["Second", "Third"]
    assert [line.subject for line in (await box.call("get_new_emails", clear=True)).emails] == ["Second", "Third"]
    assert (await box.call("get_new_emails", clear="false")).count == 0
    enter_call(Call(agent_id="another"))
    assert (await box.call("get_new_emails")).count == 3


@pytest.mark.req("SRV-MAI")
async def test_more_new_mail_than_one_answer_holds_comes_with_the_next(box: Box) -> None:
    await box.call("get_new_emails", clear=True)
    for number in range(53):
        box.deliver(mail(f"Number {number}"))
    first = await box.call("get_new_emails", clear=True)
    second = await box.call("get_new_emails", clear=True)
    assert (first.count, first.more, second.count, second.more) == (50, True, 3, False)
    assert len({line.subject for line in (*first.emails, *second.emails)}) == 53


@pytest.mark.req("SRV-MAI", "SRV-ALL")
@pytest.mark.parametrize("message_id", ["gone", "bm90LWFuLWlk", "0"])
async def test_an_id_that_is_none_is_named(box: Box, message_id: str) -> None:
    with pytest.raises((NotFound, InvalidArguments)) as refused:
        await box.call("get_email", message_id=message_id)
    assert refused.value.hint


@pytest.mark.req("SRV-ALL")
async def test_an_id_that_could_be_something_else_is_refused(box: Box) -> None:
    for message_id in ("", "a/../b", "a b", "a\r\nb", "x" * 1_001, "a?x=1", "\x00"):
        with pytest.raises(InvalidArguments):
            await box.call("get_email", message_id=message_id)
