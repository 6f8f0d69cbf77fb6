"""Sending, answering and drafting, in both kinds of mailbox."""

from __future__ import annotations

import asyncio
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import cast

import pytest

from annabelle.core.errors import InvalidArguments, NotFound, TooLarge
from annabelle.servers.kit.call import Call, enter_call
from annabelle.servers.mail_calendar.mail.outgoing_mail import OutgoingMail, compose_mail
from servers.mail_calendar.boxes import Box
from servers.mail_calendar.mails import mail


def parsed(data: bytes) -> EmailMessage:
    return cast("EmailMessage", message_from_bytes(data, policy=default))


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_mail_is_sent_and_kept_among_the_sent(box: Box) -> None:
    done = await box.call(
        "send_email",
        to="Bob <bob@example.org>, carol@example.org",
        subject="Grüße ✉",
        body="Schön,\nnicht wahr?",
        cc="dave@example.org",
    )
    (data,) = box.sent()
    sent = parsed(data)
    assert str(sent["Subject"]) == "Grüße ✉"
    assert [one.addr_spec for one in sent["To"].addresses] == ["bob@example.org", "carol@example.org"]
    assert [one.addr_spec for one in sent["Cc"].addresses] == ["dave@example.org"]
    assert sent["From"].addresses[0].addr_spec == box.address
    assert sent.get_content().splitlines() == ["Schön,", "nicht wahr?"]
    assert (await box.call("get_email", message_id=done.id)).subject == "Grüße ✉"
    assert (await box.only("in:sent")).id == done.id


@pytest.mark.req("SRV-MAI")
async def test_html_goes_with_a_plain_version_and_files_go_along(box: Box) -> None:
    (box.workspace / "Documents").mkdir(parents=True)
    (box.workspace / "Documents" / "Plan für Ada.txt").write_text("plan")
    await box.call(
        "send_email",
        to="bob@example.org",
        subject="Plan",
        body="<p>Hello <b>Bob</b></p><script>x()</script>",
        is_html=True,
        attachments=["Documents/Plan für Ada.txt"],
    )
    sent = parsed(box.sent()[0])
    plain, rich = sent.get_body(("plain",)), sent.get_body(("html",))
    assert plain is not None
    assert rich is not None
    assert plain.get_content().strip() == "Hello Bob"
    assert "<b>Bob</b>" in rich.get_content()
    assert [(part.get_filename(), part.get_content()) for part in sent.iter_attachments()] == [
        ("Plan für Ada.txt", "plan")
    ]


@pytest.mark.req("SRV-MAI")
async def test_attachments_keep_to_the_limit_and_to_the_workspace(box: Box) -> None:
    box.workspace.mkdir(parents=True, exist_ok=True)
    (box.workspace / "big.bin").write_bytes(bytes(600_000))
    with pytest.raises(TooLarge):
        await box.call("send_email", to="b@example.org", subject="s", body="b", attachments=["big.bin", "big.bin"])
    for outside in ("/etc/passwd", "../../etc/passwd"):
        with pytest.raises(Exception, match=r"\S") as refused:
            await box.call("send_email", to="b@example.org", subject="s", body="b", attachments=[outside])
        assert "root:" not in str(refused.value)
    assert box.sent() == []


WRONG = (
    {"to": "bob@example.org\r\nBcc: eve@example.org"},
    {"subject": "Hi\nBcc: eve@example.org"},
    {"cc": "bob"},
    {"to": "Doe, John <john@example.org>"},
    {"bcc": "a@b@c, @example.org"},
    {"to": ""},
    {"to": ", ".join(f"p{number}@example.org" for number in range(101))},
    {"subject": "x" * 1_001},
    {"to": "jörg@example.org"},
)


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_nothing_is_sent_that_could_not_be_meant(box: Box) -> None:
    for wrong in WRONG:
        with pytest.raises(InvalidArguments) as refused:
            await box.call("send_email", **{"to": "bob@example.org", "subject": "Hi", "body": "b", **wrong})
        assert refused.value.field == next(iter(wrong))
    assert box.sent() == []


@pytest.mark.req("SRV-MAI", "DUR-03")
async def test_a_call_that_is_repeated_sends_once(box: Box) -> None:
    enter_call(Call(call_id="call-1"))
    first = await box.call("send_email", to="bob@example.org", subject="Once", body="b")
    again = await box.call("send_email", to="bob@example.org", subject="Once", body="b")
    assert not first.already_sent
    assert again.already_sent
    assert again.id == first.id
    assert len(box.sent()) == 1
    enter_call(Call(call_id="call-2"))
    await box.call("send_email", to="bob@example.org", subject="Once", body="b")
    assert len(box.sent()) == 2


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_an_answer_stays_in_its_thread(box: Box) -> None:
    box.deliver(
        mail(
            "Lunch",
            sender="Bob <bob@example.org>",
            to=f"{box.address}, carol@example.org",
            Message_ID="<second@example.org>",
            References="<first@example.org>",
            Reply_To="Büro <office@example.org>",
        )
    )
    line = await box.only()
    done = await box.call("reply_email", message_id=line.id, body="Yes!")
    sent = parsed(box.sent()[0])
    assert [one.addr_spec for one in sent["To"].addresses] == ["office@example.org"]
    assert sent["Cc"] is None
    assert sent["Subject"] == "Re: Lunch"
    assert sent["In-Reply-To"] == "<second@example.org>"
    assert sent["References"] == "<first@example.org> <second@example.org>"
    assert (await box.call("get_email", message_id=done.id)).thread_id == line.thread_id


@pytest.mark.req("SRV-MAI")
def test_an_answer_in_a_long_thread_names_its_beginning_and_its_latest() -> None:
    thread = tuple(f"<{number}@example.org>" for number in range(100))
    answer = OutgoingMail((), "Re: Lunch", "Yes!", in_reply_to=thread[-1], references=thread)
    named = str(compose_mail(answer, "ada@example.org", "<new@example.org>")["References"]).split()
    assert named == [thread[0], *thread[-29:]]


@pytest.mark.req("SRV-MAI")
async def test_an_answer_to_all_leaves_oneself_out_and_re_is_not_doubled(box: Box) -> None:
    box.deliver(
        mail("RE: Lunch", to=f"{box.address.upper()}, carol@example.org", Cc="bob@example.org, dave@example.org")
    )
    await box.call("reply_email", message_id=(await box.only()).id, body="Yes!", reply_all=True)
    sent = parsed(box.sent()[0])
    assert sent["Subject"] == "RE: Lunch"
    assert [one.addr_spec for one in sent["To"].addresses] == ["bob@example.org"]
    assert [one.addr_spec for one in sent["Cc"].addresses] == ["carol@example.org", "dave@example.org"]


@pytest.mark.req("SRV-MAI")
async def test_an_answer_to_an_own_mail_goes_to_those_it_went_to(box: Box) -> None:
    sent = await box.call("send_email", to="bob@example.org", subject="Hello", body="b")
    await box.call("reply_email", message_id=sent.id, body="One more thing")
    assert parsed(box.sent()[1])["To"].addresses[0].addr_spec == "bob@example.org"


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_draft_is_written_changed_listed_and_sent(box: Box) -> None:
    made = await box.call("create_draft", to="bob@example.org", subject="Plan", body="First", bcc="eve@example.org")
    changed = await box.call(
        "update_draft", draft_id=made.draft_id, to="carol@example.org", subject="Plän B", body="Second"
    )
    assert changed.draft_id == made.draft_id
    (listed,) = (await box.call("list_drafts")).drafts
    assert (listed.draft_id, listed.to, listed.subject, listed.snippet) == (
        made.draft_id,
        "carol@example.org",
        "Plän B",
        "Second",
    )
    assert (await box.call("get_email", message_id=listed.message_id)).body == "Second"
    assert box.sent() == []
    done = await box.call("send_draft", draft_id=made.draft_id)
    sent = parsed(box.sent()[0])
    assert (sent["To"].addresses[0].addr_spec, str(sent["Subject"])) == ("carol@example.org", "Plän B")
    assert (await box.call("list_drafts")).drafts == []
    assert (await box.only("in:sent")).id == done.id
    with pytest.raises(NotFound):
        await box.call("send_draft", draft_id=made.draft_id)


@pytest.mark.req("SRV-MAI")
async def test_a_draft_of_an_answer_stays_in_the_thread_when_it_is_changed(box: Box) -> None:
    box.deliver(mail("Lunch", Message_ID="<lunch@example.org>"))
    line = await box.only()
    made = await box.call(
        "create_draft", to="bob@example.org", subject="Re: Lunch", body="Yes", reply_to_message_id=line.id
    )
    await box.call("update_draft", draft_id=made.draft_id, to="bob@example.org", subject="Re: Lunch", body="No")
    done = await box.call("send_draft", draft_id=made.draft_id)
    sent = parsed(box.sent()[0])
    assert sent["In-Reply-To"] == "<lunch@example.org>"
    assert sent.get_content().strip() == "No"
    assert (await box.call("get_email", message_id=done.id)).thread_id == line.thread_id


@pytest.mark.req("SRV-MAI")
async def test_a_deleted_draft_is_gone(box: Box) -> None:
    made = await box.call("create_draft", to="bob@example.org", subject="Plan", body="b")
    kept = await box.call("create_draft", to="bob@example.org", subject="Other", body="b")
    await box.call("delete_draft", draft_id=made.draft_id)
    assert [one.draft_id for one in (await box.call("list_drafts")).drafts] == [kept.draft_id]
    with pytest.raises(NotFound):
        await box.call("delete_draft", draft_id=made.draft_id)
    with pytest.raises(NotFound):
        await box.call("update_draft", draft_id=made.draft_id, to="bob@example.org", subject="s", body="b")


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_draft_that_two_calls_send_at_once_goes_out_once(box: Box) -> None:
    made = await box.call("create_draft", to="bob@example.org", subject="Once", body="b")
    outcomes = await asyncio.gather(
        *(box.call("send_draft", draft_id=made.draft_id) for _ in range(3)), return_exceptions=True
    )
    assert len(box.sent()) == 1
    assert not [one for one in outcomes if isinstance(one, BaseException) and not isinstance(one, NotFound)]
    assert (await box.call("list_drafts")).drafts == []


@pytest.mark.req("SRV-MAI")
async def test_hidden_copies_arrive_and_are_not_in_the_mail(box: Box) -> None:
    await box.call("send_email", to="bob@example.org", subject="s", body="b", bcc="eve@example.org")
    if box.kind == "google":  # Google takes the header out itself
        assert parsed(box.sent()[0])["Bcc"].addresses[0].addr_spec == "eve@example.org"
    else:
        assert b"eve@" not in box.sent()[0]
