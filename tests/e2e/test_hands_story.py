"""One real afternoon through every hand: an invitation by mail becomes an event, a summary, a sum and an answer."""

from __future__ import annotations

import email.policy
import io
import json
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from email.message import EmailMessage
from email.parser import BytesParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import openpyxl
import pytest

from annabelle.core.connections import write_connection
from annabelle.core.home import Home
from e2e.days import MakeHub, ready, reply_after_yes
from support.caldav_server import CalDavServer, caldav_server
from support.few_servers import only
from support.mail_servers import MailServers, start_mail_servers
from support.scripted_model import ScriptedServer, plan_text
from support.timing import seconds

HANDS = ("codexec", "documents", "filer", "gmail", "memory", "searcher")
AGENDA = """<html><head><title>Agenda of the garden meeting</title></head><body><article><h1>Agenda</h1>
<p>We decide about the new greenhouse. Bo Chen presents three offers, and the cheapest one costs 4200 euros.</p>
<p>Afterwards we plan the spring planting together, with coffee and cake in the old shed.</p></article></body></html>"""
INVITATION = """BEGIN:VCALENDAR\r
VERSION:2.0\r
PRODID:-//Garden club//EN\r
METHOD:REQUEST\r
BEGIN:VEVENT\r
UID:garden-meeting@example.com\r
DTSTAMP:20261115T100000Z\r
DTSTART:20261120T170000Z\r
DTEND:20261120T183000Z\r
SUMMARY:Garden meeting\r
LOCATION:Old shed\r
END:VEVENT\r
END:VCALENDAR\r
"""


@pytest.fixture(scope="module")
def mail() -> Iterator[MailServers]:
    with start_mail_servers() as servers:
        yield servers


@pytest.fixture(scope="module")
def calendar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CalDavServer]:
    with caldav_server(tmp_path_factory.mktemp("caldav")) as server:
        server.make_calendar("home", "Home")
        yield server


@pytest.fixture
def site() -> Iterator[str]:
    """A web site with one page; its address without the scheme."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/agenda"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(AGENDA.encode() if known else b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join(seconds(10))


def spreadsheet() -> bytes:
    """The offers as a spreadsheet."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Offers"
    for row in (("offer", "euros"), ("Glasbau Nord", 5100), ("Gartenhaus", 4200), ("Timber & Pane", 4850)):
        sheet.append(row)
    blob = io.BytesIO()
    book.save(blob)
    return blob.getvalue()


OFFERS = spreadsheet()


def invitation(sender: str, to: str, site: str) -> bytes:
    mail = EmailMessage()
    mail["From"], mail["To"], mail["Subject"] = f"Ann Lee <{sender}>", to, "Garden meeting on Friday"
    mail["Date"], mail["Message-ID"] = datetime(2026, 11, 15, 10, tzinfo=UTC), "<invitation-1@example.com>"
    mail.set_content(
        f"Dear Ada,\n\nplease come to our meeting. The agenda is at http://{site}/agenda and the offers are attached.\n"
        "What do they cost together?\n\nAnn\n"
    )
    mail.add_attachment(
        OFFERS,
        maintype="application",
        subtype="vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        filename="offers.xlsx",
    )
    mail.add_attachment(INVITATION.encode(), maintype="text", subtype="calendar", filename="invite.ics")
    return mail.as_bytes(policy=email.policy.SMTP)


# The mail server warns of passwords without encryption with each connection, which is meant.
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS:UserWarning")
@pytest.mark.req("SRV-MAI", "SRV-SRC", "SRV-EXE", "SRV-ALL")
def test_an_invitation_becomes_an_event_a_summary_a_sum_and_an_answer(
    make_hub: MakeHub, home: Home, rules: ScriptedServer, mail: MailServers, calendar: CalDavServer, site: str
):
    ada, ann = mail.new_address(), mail.new_address()
    account = mail.account(ada).model_copy(
        update={
            name: getattr(calendar.account(), name) for name in ("caldav_url", "caldav_username", "caldav_password")
        }
    )
    write_connection(home, "mail", account)
    hub = make_hub(PRIVATE_HOSTS_ALLOWED="127.0.0.1", WEB_FETCH_ROBOTS="false", **only(*HANDS)).start()
    for server in HANDS:
        ready(hub, server)

    def do(name: str, **arguments: object) -> str:
        """The model calls one tool, and says what came back. What it asks about has the person's yes."""
        return reply_after_yes(hub, plan_text([(name, arguments)], say="{result}"))

    mail.deliver(ada, invitation(ann, ada, site))
    message_id = found(r"\(id (\S+)\)", do("gmail_list_emails", query="is:unread"))
    letter = json.loads(do("gmail_get_email", message_id=message_id))
    page, asked = found(r"http://\S+/agenda", letter["body"]), letter["invitation"]
    do(
        "gmail_create_event",
        summary=asked["summary"],
        start_date_time=asked["start"],
        end_date_time=asked["end"],
        location=asked["location"],
    )
    (event,) = calendar.stored("home").values()
    assert "SUMMARY:Garden meeting" in event
    agenda = do("searcher_web_fetch", url=page)
    assert "greenhouse" in agenda
    offers = next(one["attachment_id"] for one in letter["attachments"] if one["name"] == "offers.xlsx")
    path = found(r"[\w./-]+\.xlsx", do("gmail_get_attachment", message_id=message_id, attachment_id=offers))
    assert (home.workspace / path).read_bytes() == OFFERS
    table = do("documents_read_spreadsheet", path=path)
    costs = [int(number) for number in re.findall(r"\b\d{4}\b", table)]
    assert sorted(costs) == [4200, 4850, 5100], table
    summary = f"# Garden meeting\n{agenda.splitlines()[6]}\nThe cheapest of {len(costs)} costs {min(costs)} euros.\n"
    do("filer_create_file", path="Documents/garden-meeting.md", content=summary)
    assert "We decide about the new greenhouse" in (home.workspace / "Documents/garden-meeting.md").read_text()
    total = found(r"\d{5}", do("codexec_execute_code", language="python", code=f"print(sum({costs}))"))
    draft = do(
        "gmail_create_draft",
        to=ann,
        subject="Re: Garden meeting on Friday",
        body=f"I come with pleasure. Together they cost {total} euros.",
        reply_to_message_id=message_id,
    )
    draft_id = json.loads(draft)["draft_id"]
    assert mail.sent_to(ann) == []
    do("gmail_send_draft", draft_id=draft_id)
    (envelope,) = mail.sent_to(ann)
    assert isinstance(envelope.content, bytes)
    answer = BytesParser(policy=email.policy.default).parsebytes(envelope.content)
    assert (answer["In-Reply-To"], answer["Subject"]) == ("<invitation-1@example.com>", "Re: Garden meeting on Friday")
    assert "<invitation-1@example.com>" in answer["References"]
    body = answer.get_body()
    assert body is not None
    assert "14150 euros" in body.get_content()
    assert len(list((mail.folder / "mail" / ann / "new").iterdir())) == 1, "it lies in the mailbox of Ann"


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    assert match, f"{pattern} is not in {text[:2000]}"
    return match[match.lastindex or 0]
