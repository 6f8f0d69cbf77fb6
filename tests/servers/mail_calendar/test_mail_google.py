"""What Google does when it is not at its best, and what is made of it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from annabelle.core.connections import remove_connection, write_connection
from annabelle.core.errors import (
    InvalidArguments,
    NotAllowed,
    OutcomeUnknown,
    TooManyRequests,
    Unavailable,
)
from annabelle.servers.mail_calendar.config import MailCalendarConfig
from annabelle.servers.mail_calendar.google_errors import GoogleRetry, parse_retry_after
from annabelle.servers.mail_calendar.server import build
from servers.mail_calendar.boxes import GoogleBox
from servers.mail_calendar.mails import mail
from support.google_double.app import CLIENT_SECRET, REFRESH_TOKEN, Fault
from support.google_double.mail import MailPart
from support.google_double.server import GoogleDouble

MESSAGES = "/gmail/v1/users/me/messages"
LABELS = "/gmail/v1/users/me/labels"


async def ready(box: GoogleBox) -> str | None:
    return (await box.call("readiness")).missing


@pytest.mark.req("SRV-MAI")
async def test_access_is_renewed_when_it_ends_and_once_for_all_who_wait(google_box: GoogleBox) -> None:
    await asyncio.gather(*(google_box.call("list_labels") for _ in range(8)))
    assert google_box.app.asked("POST", "/token") == 1
    google_box.app.end_access()
    await asyncio.gather(*(google_box.call("list_labels") for _ in range(8)))
    assert google_box.app.asked("POST", "/token") == 2


@pytest.mark.req("SRV-MAI")
async def test_access_is_renewed_before_it_ends(google_box: GoogleBox) -> None:
    google_box.app.lasts = 30  # less than the time before which it is renewed
    await google_box.call("list_labels")
    await google_box.call("list_labels")
    assert google_box.app.asked("POST", "/token") == 2
    assert google_box.app.asked("GET", LABELS) == 2, "no request was made in vain"


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_sign_in_that_was_taken_back_says_what_to_run(
    google_box: GoogleBox, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    assert await ready(google_box) is None
    google_box.app.refresh_token = "another"
    with pytest.raises(Unavailable, match="no longer accepts") as refused:
        await google_box.call("list_emails")
    assert refused.value.hint == "Run: annabelle connect google"
    assert "annabelle connect google" in str(await ready(google_box))
    told = f"{refused.value} {caplog.text} {google_box.server.__dict__}"
    assert not [secret for secret in (REFRESH_TOKEN, CLIENT_SECRET) if secret in told]


@pytest.mark.req("SRV-MAI")
async def test_an_account_that_is_connected_later_works_without_a_restart(
    mail_config: MailCalendarConfig, google_double: tuple[GoogleDouble, MailPart], google_box: GoogleBox
) -> None:
    remove_connection(google_box.config.home, "google")
    for name in ("list_emails", "list_drafts", "list_labels", "list_filters"):
        with pytest.raises(Unavailable, match="No mail account is connected") as refused:
            await google_box.call(name)
        assert refused.value.hint == "Run: annabelle connect google, or: annabelle connect mail"
    assert "annabelle connect google" in str(await ready(google_box))
    write_connection(google_box.config.home, "google", google_double[0].account())
    assert (await google_box.call("list_labels")).labels
    assert await ready(google_box) is None


@pytest.mark.req("SRV-MAI", "SRV-ALL")
@pytest.mark.parametrize("status", [429, 500, 502, 503, 0])
async def test_reading_is_tried_again_after_a_hiccup(google_box: GoogleBox, status: int) -> None:
    google_box.deliver(mail("Lunch"))
    google_box.app.faults.append(Fault("GET", MESSAGES, status=status, times=2))
    assert (await google_box.only()).subject == "Lunch"


@pytest.mark.req("SRV-MAI")
async def test_patience_with_google_ends(google_box: GoogleBox) -> None:
    google_box.app.faults.append(Fault("GET", LABELS, status=500, times=100))
    with pytest.raises(Unavailable, match="trouble answering"):
        await google_box.call("list_labels")
    assert google_box.app.asked("GET", LABELS) == 4


@pytest.mark.req("SRV-MAI")
async def test_a_long_wait_is_told_instead_of_waited_for(google_box: GoogleBox) -> None:
    google_box.app.faults.append(Fault("GET", LABELS, status=429, times=9, headers={"Retry-After": "3600"}))
    with pytest.raises(TooManyRequests) as refused:
        await google_box.call("list_labels")
    assert refused.value.retry_after == 3600
    assert google_box.app.asked("GET", LABELS) == 1


@pytest.mark.req("SRV-MAI")
async def test_a_rate_limit_that_comes_as_forbidden_is_one(google_box: GoogleBox) -> None:
    google_box.app.faults.append(Fault("GET", LABELS, status=403, reason="rateLimitExceeded"))
    assert (await google_box.call("list_labels")).labels
    google_box.app.faults.append(Fault("GET", LABELS, status=403, reason="insufficientPermissions"))
    with pytest.raises(NotAllowed) as refused:
        await google_box.call("list_labels")
    assert refused.value.hint == "Allow it: annabelle connect google"


@pytest.mark.req("SRV-MAI", "DUR-03")
async def test_a_send_that_surely_did_not_happen_is_tried_again(google_box: GoogleBox) -> None:
    google_box.app.faults.append(Fault("POST", f"{MESSAGES}/send", status=429, times=2))
    await google_box.call("send_email", to="bob@example.org", subject="s", body="b")
    assert len(google_box.sent()) == 1


@pytest.mark.req("SRV-MAI", "DUR-03")
@pytest.mark.parametrize("status", [0, 500, 503])
async def test_a_send_whose_answer_was_lost_is_found_among_the_sent(google_box: GoogleBox, status: int) -> None:
    google_box.app.faults.append(Fault("POST", f"{MESSAGES}/send", status=status, done_first=True))
    done = await google_box.call("send_email", to="bob@example.org", subject="s", body="b")
    assert len(google_box.sent()) == 1
    assert done.id in google_box.mail.mails


@pytest.mark.req("SRV-MAI", "DUR-03")
async def test_a_send_of_which_nothing_is_known_is_not_repeated(google_box: GoogleBox) -> None:
    google_box.app.faults.append(Fault("POST", f"{MESSAGES}/send", status=0))
    with pytest.raises(OutcomeUnknown):
        await google_box.call("send_email", to="bob@example.org", subject="s", body="b")
    assert google_box.app.asked("POST", f"{MESSAGES}/send") == 1


@pytest.mark.req("SRV-MAI", "DUR-03")
@pytest.mark.parametrize("done_first", [True, False])
async def test_a_draft_whose_sending_broke_is_looked_for(google_box: GoogleBox, done_first: bool) -> None:
    made = await google_box.call("create_draft", to="bob@example.org", subject="s", body="b")
    google_box.app.faults.append(Fault("POST", "/gmail/v1/users/me/drafts/send", status=0, done_first=done_first))
    if done_first:
        await google_box.call("send_draft", draft_id=made.draft_id)
    else:
        with pytest.raises(OutcomeUnknown):
            await google_box.call("send_draft", draft_id=made.draft_id)
    assert len(google_box.sent()) == int(done_first)


@pytest.mark.req("SRV-MAI")
async def test_a_change_that_may_be_repeated_is(google_box: GoogleBox) -> None:
    google_box.deliver(mail("Lunch"))
    line = await google_box.only()
    google_box.app.faults.append(Fault("POST", f"{MESSAGES}/{line.id}/trash", status=0, done_first=True))
    await google_box.call("delete_email", message_id=line.id)
    assert "TRASH" in google_box.mail.mails[line.id].labels


@pytest.mark.req("SRV-ALL")
async def test_a_cancelled_call_ends_and_the_next_one_works(google_box: GoogleBox) -> None:
    fault = Fault("GET", LABELS, gate=threading.Event())
    assert fault.gate is not None
    google_box.app.faults.append(fault)
    running = asyncio.ensure_future(google_box.call("list_labels"))
    assert await asyncio.to_thread(fault.reached.wait, 10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    fault.gate.set()
    assert (await google_box.call("list_labels")).labels


@pytest.mark.req("SRV-MAI")
async def test_new_mail_is_found_after_google_has_forgotten_the_past(google_box: GoogleBox) -> None:
    await google_box.call("get_new_emails", clear=True)
    google_box.deliver(mail("Lunch"))
    google_box.mail.history_begins = 10**9
    assert [line.subject for line in (await google_box.call("get_new_emails")).emails] == ["Lunch"]


@pytest.mark.req("SRV-MAI")
async def test_a_large_mail_is_uploaded(google_box: GoogleBox) -> None:
    config = MailCalendarConfig(
        files=google_box.config.files, google=google_box.config.google, attachment_max_bytes=10_000_000
    )
    server = build(config)
    google_box.workspace.mkdir(parents=True, exist_ok=True)
    (google_box.workspace / "big.bin").write_bytes(bytes(range(256)) * 10_000)
    await server.tools["send_email"].call(
        {"to": "b@example.org", "subject": "Big", "body": "b", "attachments": ["big.bin"]}
    )
    await server.close()
    assert google_box.app.asked("POST", f"/upload{MESSAGES}/send") == 1
    assert b"Subject: Big" in google_box.sent()[0]


@pytest.mark.req("SRV-MAI")
async def test_what_google_does_not_accept_is_told_in_its_words(google_box: GoogleBox) -> None:
    with pytest.raises(InvalidArguments, match="Unrecognized forwarding address"):
        await google_box.call("create_filter", criteria={"from": "a@example.org"}, action={"forward": "b@example.org"})


@pytest.mark.req("SRV-MAI")
async def test_waits_grow_and_dates_are_understood() -> None:
    assert parse_retry_after("7") == 7
    assert parse_retry_after("Thu, 01 Jan 1970 00:00:00 GMT") == 0
    assert parse_retry_after("soon") is None
    assert not await GoogleRetry(longest=1).wait(1, "2")
