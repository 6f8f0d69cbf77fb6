"""What mail servers do when they are not at their best, and what is made of it."""

from __future__ import annotations

import asyncio
import imaplib
import json
import smtplib

import pytest
from imapclient import imap_utf7

from annabelle.core.connections import write_connection
from annabelle.core.errors import Conflict, InvalidArguments, NotFound, OutcomeUnknown, TooLarge, Unavailable
from annabelle.servers.mail_calendar.config import MailCalendarConfig, ServerAccess
from annabelle.servers.mail_calendar.mail import imap_filters, imap_messages, imap_outbox
from annabelle.servers.mail_calendar.server import build
from servers.mail_calendar.boxes import ImapBox
from servers.mail_calendar.mails import mail
from support.mail_servers import REFUSED, MailServers


@pytest.mark.req("SRV-MAI", "SRV-ALL")
@pytest.mark.parametrize("wrong", ["not-the-password", "nicht-das-Paßwort"])
async def test_a_wrong_password_says_what_to_run(
    mail_config: MailCalendarConfig, mail_servers: MailServers, caplog: pytest.LogCaptureFixture, wrong: str
) -> None:
    caplog.set_level("DEBUG")
    address = mail_servers.new_address()
    account = mail_servers.account(address, wrong)
    write_connection(mail_config.home, "mail", account)
    with pytest.raises(Unavailable, match="does not accept the user name or the password"):
        await imap_outbox.deliver_mail(
            account, ["bob@example.com"], b"Subject: x", imap_outbox.SmtpReceipt(), ServerAccess()
        )
    server = build(mail_config)
    with pytest.raises(Unavailable, match="does not accept the user name or the password") as refused:
        await server.tools["list_emails"].call({})
    assert refused.value.hint == "Run: annabelle connect mail"
    told = await server.tools["readiness"].call({})
    assert "annabelle connect mail" in str(told)
    assert wrong not in f"{refused.value}{caplog.text}{told}"
    write_connection(mail_config.home, "mail", mail_servers.account(address))
    assert (await server.tools["list_labels"].call({})).labels  # pyright: ignore
    assert "annabelle connect mail" not in str(await server.tools["readiness"].call({}))
    await server.close()


@pytest.mark.req("SRV-MAI")
async def test_a_server_that_is_not_there_is_told(mail_config: MailCalendarConfig, mail_servers: MailServers) -> None:
    account = mail_servers.account(mail_servers.new_address())
    door = account.imap.model_copy(update={"port": 1})
    write_connection(mail_config.home, "mail", account.model_copy(update={"imap": door}))
    server = build(mail_config)
    with pytest.raises(Unavailable, match="can not be reached"):
        await server.tools["list_emails"].call({})
    await server.close()


@pytest.mark.req("SRV-MAI")
async def test_folders_with_odd_names_do_not_lock_the_mailbox(imap_box: ImapBox) -> None:
    names = ["a[b", "c]d", "{5}", "say 'hi' &", "日本", "(x)"]
    with imaplib.IMAP4("127.0.0.1", imap_box.servers.imap_port) as other:
        other.login(imap_box.address, imap_box.servers.password)
        for name in names:
            assert other.create(b'"' + imap_utf7.encode(name) + b'"')[0] == "OK"  # pyright: ignore
    labels = {one.id for one in (await imap_box.call("list_labels")).labels}
    assert set(names) <= labels
    imap_box.deliver(mail("Lunch"))
    line = await imap_box.only()
    for name in names:
        line = await imap_box.call("modify_labels", message_id=line.id, add_label_ids=[name])
        (copy,) = (await imap_box.call("list_emails", label_ids=[name])).emails
        assert (await imap_box.call("get_email", message_id=copy.id)).subject == "Lunch"
    for wrong in ("a[b", "x*", "a//b", "/a", "v1.0", "UNREAD"):
        with pytest.raises(InvalidArguments):
            await imap_box.call("create_label", name=wrong)


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_connection_that_was_killed_between_calls_is_opened_again(imap_box: ImapBox) -> None:
    imap_box.deliver(mail("Lunch"))
    line = await imap_box.only()
    imap_box.servers.break_connections()
    assert (await imap_box.call("get_email", message_id=line.id)).subject == "Lunch"
    imap_box.servers.break_connections()
    await imap_box.call("create_draft", to="bob@example.org", subject="Once", body="b")
    assert len((await imap_box.call("list_drafts")).drafts) == 1


@pytest.mark.req("SRV-MAI")
async def test_ids_are_the_same_after_a_restart(imap_box: ImapBox) -> None:
    imap_box.deliver(mail("Lunch"))
    line = await imap_box.only()
    draft = await imap_box.call("create_draft", to="bob@example.org", subject="Plan", body="b")
    other = build(imap_box.config)
    assert (await other.tools["get_email"].call({"message_id": line.id})).subject == "Lunch"  # pyright: ignore
    await other.tools["delete_draft"].call({"draft_id": draft.draft_id})
    await other.close()


@pytest.mark.req("SRV-MAI")
async def test_an_id_follows_a_mail_that_was_moved_here(imap_box: ImapBox) -> None:
    imap_box.deliver(mail("Lunch"))
    first = (await imap_box.only()).id
    archived = await imap_box.call("modify_labels", message_id=first, remove_label_ids=["INBOX"])
    assert archived.id != first
    assert (await imap_box.call("get_email", message_id=first)).labels[0] == "ARCHIVE"
    back = await imap_box.call("modify_labels", message_id=first, add_label_ids=["INBOX"], remove_label_ids=["ARCHIVE"])
    for known in (first, archived.id, back.id):
        assert (await imap_box.call("get_email", message_id=known)).labels[0] == "INBOX"


@pytest.mark.req("SRV-MAI")
async def test_a_mail_that_somebody_else_moved_is_told(imap_box: ImapBox) -> None:
    imap_box.deliver(mail("Lunch"))
    line = await imap_box.only()
    other = build(imap_box.config)
    await other.tools["delete_email"].call({"message_id": line.id})
    await other.close()
    for name, more in (("get_email", {}), ("mark_read", {"read": True}), ("delete_email", {})):
        with pytest.raises(NotFound, match="no longer there"):
            await imap_box.call(name, message_id=line.id, **more)


@pytest.mark.req("SRV-MAI")
async def test_a_label_that_is_added_twice_is_there_once(imap_box: ImapBox) -> None:
    label = await imap_box.call("create_label", name="Work")
    imap_box.deliver(mail("Lunch"))
    line = await imap_box.only()
    for _ in range(2):
        await imap_box.call("modify_labels", message_id=line.id, add_label_ids=[label.id])
    assert len((await imap_box.call("list_emails", label_ids=[label.id])).emails) == 1
    assert (await imap_box.only("in:inbox")).id == line.id


QUERIES: dict[str, set[str]] = {
    "subject:grüße": {"Grüße"},
    "from:bob OR from:carol": {"Grüße", "Plan"},
    "from:carol OR subject:grüße": {"Grüße", "Plan"},
    "-(plan) in:inbox": {"Grüße"},
    "-to:ada": set(),
    "to:ada": {"Grüße", "Plan"},
    "before:2020/01/01": set(),
    "after:2020/01/01 smaller:1M": {"Grüße", "Plan"},
    "is:read": set(),
    '"x) OR (ALL"': set(),
    "{5}": set(),
    "in:anywhere plan": {"Plan"},
    "older_than:1d": set(),
}


@pytest.mark.req("SRV-MAI")
async def test_searches_are_put_into_the_words_of_imap(imap_box: ImapBox) -> None:
    imap_box.deliver(mail("Grüße"))
    imap_box.deliver(mail("Plan", "About the plan", sender="carol@example.org"))
    found = {query: (await imap_box.call("list_emails", query=query)).emails for query in QUERIES}
    assert {query: {line.subject for line in lines} for query, lines in found.items()} == QUERIES


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_search_this_mailbox_can_not_answer_is_refused(imap_box: ImapBox) -> None:
    for query in ("foo:bar", "is:happy", "newer_than:soon", "after:yesterday", "larger:big", "-in:inbox", "in:a in:b"):
        with pytest.raises((InvalidArguments, NotFound)) as refused:
            await imap_box.call("list_emails", query=query)
        assert refused.value.hint


@pytest.mark.req("SRV-MAI")
async def test_an_address_the_server_does_not_take_is_named(imap_box: ImapBox) -> None:
    with pytest.raises(InvalidArguments, match=REFUSED):
        await imap_box.call("send_email", to=REFUSED, subject="s", body="b")
    assert (await imap_box.call("list_emails", query="in:sent")).emails == []
    done = await imap_box.call("send_email", to=f"bob@example.org, {REFUSED}", subject="s", body="b")
    assert REFUSED in done.notice
    assert len(imap_box.sent()) == 1


@pytest.mark.req("SRV-MAI", "DUR-03")
@pytest.mark.parametrize("where", ["data", "taken"])
async def test_a_server_that_hangs_up_while_it_takes_a_mail_leaves_the_outcome_open(
    imap_box: ImapBox, where: str
) -> None:
    imap_box.servers.hang_up.add(where)
    with pytest.raises(OutcomeUnknown):
        await imap_box.call("send_email", to="bob@example.org", subject="s", body="b")
    assert (await imap_box.call("list_emails", query="in:sent")).emails == []
    assert len(imap_box.sent()) == (where == "taken")


@pytest.mark.req("SRV-MAI", "DUR-03")
async def test_a_mail_whose_call_is_cancelled_when_it_is_taken_is_found_by_the_next_try(
    imap_box: ImapBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await imap_box.call("create_draft", to="bob@example.org", subject="Once", body="b")
    loop, taken = asyncio.get_running_loop(), smtplib.SMTP.data
    running = asyncio.ensure_future(imap_box.call("send_draft", draft_id=made.draft_id))

    def cancelled_then(server: smtplib.SMTP, content: bytes) -> tuple[int, bytes]:
        answer = taken(server, content)
        loop.call_soon_threadsafe(running.cancel)
        return answer

    monkeypatch.setattr(smtplib.SMTP, "data", cancelled_then)
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (await imap_box.call("send_draft", draft_id=made.draft_id)).already_sent
    assert len(imap_box.sent()) == 1
    assert (await imap_box.call("list_drafts")).drafts == []


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_draft_of_another_program_is_sent_once_or_names_what_is_wrong(imap_box: ImapBox) -> None:
    with imaplib.IMAP4("127.0.0.1", imap_box.servers.imap_port) as other:
        other.login(imap_box.address, imap_box.servers.password)
        for to in ("bob@example.org", "jürgen@example.org"):
            assert other.append("Drafts", "", "", f"To: {to}\r\nSubject: s\r\n\r\nb".encode())[0] == "OK"
    wrong, right = (await imap_box.call("list_drafts")).drafts
    with pytest.raises(InvalidArguments, match=r"jürgen@example\.org"):
        await imap_box.call("send_draft", draft_id=wrong.draft_id)
    sending = (imap_box.call("send_draft", draft_id=right.draft_id) for _ in range(2))
    outcomes = await asyncio.gather(*sending, return_exceptions=True)
    assert [type(one) for one in outcomes if isinstance(one, BaseException)] == [NotFound]
    assert len(imap_box.sent()) == 1


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_draft_too_large_to_be_read_whole_is_kept_and_not_sent_in_part(
    imap_box: ImapBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await imap_box.call("create_draft", to="bob@example.org", subject="Long", body="b" * 3_000)
    monkeypatch.setattr(imap_messages, "WHOLE_BYTES", 1_000)
    monkeypatch.setattr(imap_messages, "_LARGE_BEGINNING", 500)
    with pytest.raises(TooLarge):
        await imap_box.call("send_draft", draft_id=made.draft_id)
    assert imap_box.sent() == []
    assert len((await imap_box.call("list_drafts")).drafts) == 1


@pytest.mark.req("SRV-MAI")
async def test_a_draft_that_another_program_marked_as_deleted_is_not_sent(imap_box: ImapBox) -> None:
    made = await imap_box.call("create_draft", to="bob@example.org", subject="No", body="b")
    with imaplib.IMAP4("127.0.0.1", imap_box.servers.imap_port) as other:
        other.login(imap_box.address, imap_box.servers.password)
        other.select("Drafts")
        assert other.store("1", "+FLAGS", "\\Deleted")[0] == "OK"
        with pytest.raises(NotFound):
            await imap_box.call("send_draft", draft_id=made.draft_id)
    assert imap_box.sent() == []


@pytest.mark.req("SRV-MAI")
async def test_a_draft_for_nobody_is_kept_and_not_sent(imap_box: ImapBox) -> None:
    made = await imap_box.call("create_draft", to="", subject="Notes", body="b")
    with pytest.raises(Conflict):
        await imap_box.call("send_draft", draft_id=made.draft_id)
    assert len((await imap_box.call("list_drafts")).drafts) == 1


@pytest.mark.req("SRV-MAI")
async def test_mail_goes_from_one_mailbox_to_another_and_back(imap_box: ImapBox, mail_servers: MailServers) -> None:
    other = mail_servers.new_address()
    await imap_box.call("send_email", to=other, subject="Ping", body="b")
    write_connection(imap_box.config.home, "mail", mail_servers.account(other))
    line = await imap_box.only()
    assert (line.subject, line.sender) == ("Ping", imap_box.address)
    await imap_box.call("reply_email", message_id=line.id, body="Pong")
    write_connection(imap_box.config.home, "mail", mail_servers.account(imap_box.address))
    assert (await imap_box.only()).subject == "Re: Ping"


@pytest.mark.req("SRV-MAI")
async def test_filters_are_kept_for_the_next_start_and_say_who_applies_them(imap_box: ImapBox) -> None:
    made = await imap_box.call(
        "create_filter", criteria={"from": "bob"}, action={"add_label_ids": ["STARRED"], "remove_label_ids": ["UNREAD"]}
    )
    assert "Annabelle applies this filter" in made.notice
    kept = json.loads((imap_box.config.state / "filters.json").read_text())
    assert kept["accounts"][imap_box.address]["filters"][0]["id"] == made.id
    imap_box.deliver(mail("Lunch"))
    other = build(imap_box.config)
    (line,) = (await other.tools["get_new_emails"].call({})).emails  # pyright: ignore
    await other.close()
    assert not line.unread
    assert "STARRED" in line.labels


@pytest.mark.req("SRV-MAI")
async def test_a_filter_whose_label_is_gone_keeps_no_mail_back(imap_box: ImapBox) -> None:
    label = await imap_box.call("create_label", name="Soon gone")
    await imap_box.call("create_filter", criteria={"from": "bob"}, action={"add_label_ids": [label.id]})
    await imap_box.call("delete_label", label_id=label.id)
    imap_box.deliver(mail("Lunch"))
    assert [one.subject for one in (await imap_box.call("get_new_emails")).emails] == ["Lunch"]


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_listing_mail_changes_nothing_in_the_mailbox(imap_box: ImapBox) -> None:
    await imap_box.call("create_filter", criteria={"from": "bob"}, action={"remove_label_ids": ["UNREAD"]})
    imap_box.deliver(mail("Lunch"))
    assert (await imap_box.only()).unread
    assert (await imap_box.only()).unread
    await imap_box.call("get_new_emails")
    assert not (await imap_box.only()).unread


@pytest.mark.req("SRV-MAI")
async def test_filters_that_want_the_opposite_of_each_other_keep_no_mail_back(imap_box: ImapBox) -> None:
    await imap_box.call("create_label", name="Work")
    await imap_box.call("create_filter", criteria={"from": "bob"}, action={"add_label_ids": ["Work"]})
    await imap_box.call("create_filter", criteria={"subject": "Lunch"}, action={"remove_label_ids": ["work", "UNREAD"]})
    imap_box.deliver(mail("Lunch"))
    assert (await imap_box.call("get_new_emails")).notice is None
    found = await imap_box.call("list_emails", query="in:work")
    assert [(one.subject, one.unread) for one in found.emails] == [("Lunch", False)]


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_disk_that_takes_no_note_of_the_filters_keeps_no_mail_back(
    imap_box: ImapBox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    await imap_box.call("create_filter", criteria={"from": "bob"}, action={"add_label_ids": ["STARRED"]})
    imap_box.deliver(mail("Lunch"))
    monkeypatch.setattr(imap_filters, "write_atomically", full)
    found = await imap_box.call("get_new_emails")
    assert [one.subject for one in found.emails] == ["Lunch"]
    assert "disk refuses" in found.notice


@pytest.mark.req("SRV-ALL")
async def test_many_calls_at_once_share_one_connection(imap_box: ImapBox) -> None:
    imap_box.deliver(mail("Lunch"))
    line = await imap_box.only()
    calls = [imap_box.call("mark_read", message_id=line.id, read=bool(number % 2)) for number in range(6)]
    calls += [imap_box.call("get_email", message_id=line.id) for _ in range(6)]
    done = await asyncio.gather(*calls)
    assert [one.subject for one in done[6:]] == ["Lunch"] * 6


@pytest.mark.req("SRV-ALL")
async def test_a_cancelled_call_leaves_the_mailbox_usable(imap_box: ImapBox) -> None:
    for number in range(5):
        imap_box.deliver(mail(f"Number {number}"))
    for _ in range(3):
        running = asyncio.ensure_future(imap_box.call("list_emails"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
    assert len((await imap_box.call("list_emails")).emails) == 5
