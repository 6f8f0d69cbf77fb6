"""Putting mail away: trash, marks, labels, attachments and filters, in both kinds of mailbox."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import AnnabelleError, Conflict, InvalidArguments, NotAllowed, NotFound, TooLarge
from servers.mail_calendar.boxes import Box
from servers.mail_calendar.mails import mail


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_deleted_mail_is_in_the_trash(box: Box) -> None:
    box.deliver(mail("Old news"))
    done = await box.call("delete_email", message_id=(await box.only()).id)
    assert (await box.call("list_emails")).emails == []
    found = await box.only("in:trash")
    assert (found.id, found.subject) == (done.id, "Old news")


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_mail_that_two_calls_delete_at_once_is_in_the_trash_once(box: Box) -> None:
    box.deliver(mail("Old news"))
    line = await box.only()
    done = await asyncio.gather(
        *(box.call("delete_email", message_id=line.id) for _ in range(3)), return_exceptions=True
    )
    assert any(not isinstance(one, BaseException) for one in done)
    assert all(not isinstance(one, BaseException) or isinstance(one, NotFound) for one in done)
    assert (await box.only("in:trash")).subject == "Old news"


@pytest.mark.req("SRV-MAI")
async def test_a_mail_is_marked_read_and_unread_again(box: Box) -> None:
    box.deliver(mail())
    line = await box.only()
    done = await box.call("mark_read", message_id=line.id, read=True)
    assert "UNREAD" not in done.labels
    assert (await box.call("list_emails", query="is:unread")).emails == []
    await box.call("mark_read", message_id=done.id, read=False)
    assert (await box.only("is:unread")).id == line.id


@pytest.mark.req("SRV-MAI")
async def test_labels_are_added_and_removed(box: Box) -> None:
    box.deliver(mail("Invoice"))
    made = await box.call("create_label", name="Müller & Co")
    line = await box.only()
    done = await box.call(
        "modify_labels", message_id=line.id, add_label_ids=["STARRED", made.id], remove_label_ids=["INBOX", "UNREAD"]
    )
    assert "STARRED" in done.labels
    assert "UNREAD" not in done.labels
    assert (await box.call("list_emails", query="in:inbox")).emails == []
    (found,) = (await box.call("list_emails", label_ids=["müller & co"])).emails
    assert (found.id, found.subject) == (done.id, "Invoice")


@pytest.mark.req("SRV-MAI")
async def test_a_mail_without_the_inbox_is_archived_not_lost(box: Box) -> None:
    box.deliver(mail("Keep me"))
    line = await box.only()
    await box.call("modify_labels", message_id=line.id, remove_label_ids=["INBOX"])
    assert (await box.call("list_emails", query="in:inbox")).emails == []
    assert (await box.only("keep")).subject == "Keep me"
    again = await box.call("modify_labels", message_id=line.id, add_label_ids=["INBOX"])
    assert (await box.only("in:inbox")).subject == "Keep me"
    assert again.labels


@pytest.mark.req("SRV-ALL")
async def test_labels_that_make_no_sense_are_named(box: Box) -> None:
    box.deliver(mail())
    line = await box.only()
    with pytest.raises(InvalidArguments):
        await box.call("modify_labels", message_id=line.id)
    with pytest.raises(InvalidArguments):
        await box.call("modify_labels", message_id=line.id, add_label_ids=["INBOX"], remove_label_ids=["inbox"])
    with pytest.raises(NotFound, match="no label"):
        await box.call("modify_labels", message_id=line.id, add_label_ids=["Nowhere"])


@pytest.mark.req("SRV-MAI")
async def test_labels_are_made_listed_and_deleted_without_losing_mail(box: Box) -> None:
    made = await box.call("create_label", name="Work/Travel")
    labels = {one.id: one for one in (await box.call("list_labels")).labels}
    assert (labels[made.id].name, labels[made.id].kind) == ("Work/Travel", "user")
    assert {"INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "UNREAD", "STARRED"} <= labels.keys()
    with pytest.raises(Conflict):
        await box.call("create_label", name="Work/Travel")
    box.deliver(mail("Ticket"))
    line = await box.only()
    await box.call("modify_labels", message_id=line.id, add_label_ids=[made.id], remove_label_ids=["INBOX"])
    await box.call("delete_label", label_id=made.id)
    assert made.id not in {one.id for one in (await box.call("list_labels")).labels}
    assert (await box.only("subject:ticket")).subject == "Ticket"
    with pytest.raises(NotFound):
        await box.call("delete_label", label_id=made.id)
    with pytest.raises(NotAllowed):
        await box.call("delete_label", label_id="INBOX")


@pytest.mark.req("SRV-ALL")
async def test_a_label_with_a_line_break_is_refused(box: Box) -> None:
    for name in ("", "a\r\nb", "\x00", "x" * 201):
        with pytest.raises(InvalidArguments):
            await box.call("create_label", name=name)


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_an_attachment_is_saved_in_the_workspace_under_its_own_name(box: Box) -> None:
    box.deliver(mail("Files", files={"Übersicht 2026.pdf": b"%PDF-1", "data.bin": bytes(range(256))}))
    line = await box.only()
    assert line.has_attachments
    listed = (await box.call("list_attachments", message_id=line.id)).attachments
    assert [(one.name, one.size) for one in listed] == [("Übersicht 2026.pdf", 6), ("data.bin", 256)]
    saved = await box.call("get_attachment", message_id=line.id, attachment_id=listed[1].attachment_id)
    assert (saved.path, saved.size) == ("Downloads/data.bin", 256)
    assert (box.workspace / saved.path).read_bytes() == bytes(range(256))
    again = await box.call("get_attachment", message_id=line.id, attachment_id=listed[1].attachment_id)
    assert again.path == "Downloads/data (2).bin"
    named = await box.call("get_attachment", message_id=line.id, attachment_id=listed[0].attachment_id)
    assert named.path == "Downloads/Übersicht 2026.pdf"


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_an_attachment_can_not_leave_the_downloads(box: Box) -> None:
    box.deliver(mail("Files", files={"../../../evil.txt": b"x", "run.exe": b"MZ"}))
    line = await box.only()
    listed = (await box.call("list_attachments", message_id=line.id)).attachments
    saved = await box.call("get_attachment", message_id=line.id, attachment_id=listed[0].attachment_id)
    assert saved.path.startswith("Downloads/")
    assert "/" not in saved.path.removeprefix("Downloads/")
    with pytest.raises(AnnabelleError):
        await box.call("get_attachment", message_id=line.id, attachment_id=listed[1].attachment_id)
    with pytest.raises(NotFound):
        await box.call("get_attachment", message_id=line.id, attachment_id="9.9")


@pytest.mark.req("SRV-MAI")
async def test_an_attachment_over_the_limit_is_refused(box: Box) -> None:
    box.deliver(mail("Big", files={"big.bin": bytes(1_000_001)}))
    line = await box.only()
    (listed,) = (await box.call("list_attachments", message_id=line.id)).attachments
    with pytest.raises(TooLarge, match="1000000"):
        await box.call("get_attachment", message_id=line.id, attachment_id=listed.attachment_id)
    assert not list((box.workspace / "Downloads").glob("*"))


@pytest.mark.req("SRV-MAI")
async def test_a_label_that_was_added_is_among_the_labels_that_are_told(box: Box) -> None:
    made = await box.call("create_label", name="Trips")
    box.deliver(mail("Lunch"))
    line = await box.only()
    told = await box.call("modify_labels", message_id=line.id, add_label_ids=[made.id])
    assert {"INBOX", made.id} <= set(told.labels)
    assert [one.subject for one in (await box.call("list_emails", label_ids=[made.id])).emails] == ["Lunch"]


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_filter_sorts_mail_that_comes_after_it(box: Box) -> None:
    label = await box.call("create_label", name="Invoices")
    box.deliver(mail("Invoice 1", sender="shop@example.org"))
    made = await box.call(
        "create_filter",
        criteria={"from": "shop@example.org", "subject": "invoice"},
        action={"add_label_ids": [label.id], "remove_label_ids": ["INBOX", "UNREAD"]},
    )
    box.deliver(mail("Invoice 2", sender="shop@example.org"))
    box.deliver(mail("Invoice 3", sender="bob@example.org"))
    await box.call("get_new_emails")  # a mailbox without filters of its own has them applied then
    inbox = {line.subject for line in (await box.call("list_emails", query="in:inbox")).emails}
    assert inbox == {"Invoice 1", "Invoice 3"}
    (sorted_,) = (await box.call("list_emails", label_ids=[label.id])).emails
    assert (sorted_.subject, sorted_.unread) == ("Invoice 2", False)
    shown = await box.call("get_filter", filter_id=made.id)
    assert shown.criteria == {"from": "shop@example.org", "subject": "invoice"}
    assert [one.id for one in (await box.call("list_filters")).filters] == [made.id]
    await box.call("delete_filter", filter_id=made.id)
    assert (await box.call("list_filters")).filters == []
    box.deliver(mail("Invoice 4", sender="shop@example.org"))
    assert (await box.only("subject:4 in:inbox")).unread
    with pytest.raises(NotFound):
        await box.call("get_filter", filter_id=made.id)
    with pytest.raises(NotFound):
        await box.call("delete_filter", filter_id=made.id)


@pytest.mark.req("SRV-ALL")
async def test_a_filter_that_says_nothing_is_refused(box: Box) -> None:
    for criteria, action in (
        ({}, {"add_label_ids": ["STARRED"]}),
        ({"from": "a@example.org"}, {}),
        ({"from": "a@example.org", "size_comparison": "larger"}, {"add_label_ids": ["STARRED"]}),
        ({"from": "a\nb"}, {"add_label_ids": ["STARRED"]}),
        ({"from": "a@example.org"}, {"forward": "nobody"}),
        ({"sender_typo": "a"}, {"add_label_ids": ["STARRED"]}),
    ):
        with pytest.raises(InvalidArguments):
            await box.call("create_filter", criteria=criteria, action=action)
    assert (await box.call("list_filters")).filters == []


@pytest.mark.req("SRV-MAI")
async def test_a_filter_that_would_forward_where_it_can_not_is_refused(box: Box) -> None:
    with pytest.raises((NotAllowed, InvalidArguments)):
        await box.call("create_filter", criteria={"from": "a@example.org"}, action={"forward": "b@example.org"})
    assert (await box.call("list_filters")).filters == []


@pytest.mark.req("SRV-MAI")
async def test_filters_go_by_attachment_and_size_too(box: Box) -> None:
    await box.call(
        "create_filter", criteria={"has_attachment": True, "query": "from:bob"}, action={"add_label_ids": ["STARRED"]}
    )
    box.deliver(mail("With", files={"a.txt": b"x"}))
    box.deliver(mail("Without"))
    await box.call("get_new_emails")
    assert (await box.only("is:starred")).subject == "With"
