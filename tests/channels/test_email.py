"""A person writes mails to Annabelle: whose they are, their threads and their files."""

from __future__ import annotations

from collections.abc import Iterator
from email.message import EmailMessage

import pytest

from channels.correspondents import EmailPeople, email_people, read_body
from hub.hubs import HubProcess, fresh_home, wait_for
from support.few_servers import only
from support.mail_servers import DOMAIN
from support.scripted_model import ScriptedServer, plan_text

ADA = f"ada@{DOMAIN}"


@pytest.fixture(scope="module")
def people() -> Iterator[EmailPeople]:
    with email_people() as made:
        yield made


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer, people: EmailPeople) -> Iterator[HubProcess]:
    home = fresh_home(tmp_path_factory.mktemp("email"))
    made = HubProcess(home, model.openai_url, CHANNEL_POLL_INTERVAL_MS="200", **only(), **people.settings).start()
    made.http.post("/channels/email/accounts", json={"accountId": ADA}).raise_for_status()
    wait_for(lambda: status(made)["state"] == "listening", "it listens")
    yield made
    made.end()


def status(hub: HubProcess) -> dict[str, object]:
    (channel,) = hub.http.get("/channels").json()["channels"]
    return channel


def wait_for_mail(people: EmailPeople, part: str, account: str = ADA) -> EmailMessage:
    def look() -> EmailMessage | None:
        return next((mail for mail in people.mails(account) if part in read_body(mail)), None)

    try:
        return wait_for(look, f"a mail with “{part}”")
    except AssertionError as missing:
        raise AssertionError(f"{missing}; there are {people.texts(account)}") from None


@pytest.mark.req("CHN-02")
@pytest.mark.incident("I-06")
def test_a_forged_mail_is_a_strangers(hub: HubProcess, people: EmailPeople) -> None:
    before = int(str(status(hub)["ignored"]))
    for said in (f"mx.example.com; dmarc=fail header.from={DOMAIN}", "mx.evil.org; dmarc=pass", "mx.example.com; none"):
        mail = people.write(ADA, plan_text([], say="Forged."), Authentication_Results=said)
        people.deliver_again(ADA, mail)
    people.say(ADA, plan_text([], say="Genuine."))
    wait_for_mail(people, "Genuine.")
    wait_for(lambda: int(str(status(hub)["ignored"])) >= before + 3, "three ignored mails")
    assert not any("Forged." in text for text in people.texts(ADA))


@pytest.mark.req("CHN-01", "CST-08")
def test_an_answer_stands_in_the_thread_and_says_that_a_program_wrote_it(hub: HubProcess, people: EmailPeople) -> None:
    asked = people.write(
        ADA, plan_text([], say="It is **threaded**: [x](https://example.org/y)"), References="<root@x>"
    )
    people.deliver_again(ADA, asked)
    answer = wait_for_mail(people, "threaded")
    assert answer["Subject"] == "Re: our talk"
    assert answer["In-Reply-To"] == asked["Message-ID"]
    assert answer["References"] == f"<root@x> {asked['Message-ID']}"
    assert answer["Auto-Submitted"] == "auto-replied"
    assert read_body(answer) == "It is threaded: x (https://example.org/y)"
    html = answer.get_body(("html",))
    assert html is not None
    assert "<b>threaded</b>: x (https://example.org/y)" in html.get_content()


@pytest.mark.req("CHN-01")
def test_a_pairing_code_may_stand_in_the_subject_or_below_a_greeting(hub: HubProcess, people: EmailPeople) -> None:
    for account, subject, body in (
        (f"bo@{DOMAIN}", "{code}", "\n-- \nBo"),
        (f"cy@{DOMAIN}", "Hi", "Here:\n\n{code}\n"),
    ):
        code = hub.http.post("/channels/email/pair", json={}).json()["code"]
        mail = people.write(account, body.format(code=code), Subject=subject.format(code=code), In_Reply_To="")
        people.deliver_again(account, mail)
        wait_for_mail(people, "You are connected", account)


@pytest.mark.req("CHN-01")
def test_a_file_that_a_person_sends_lies_in_the_workspace(hub: HubProcess, people: EmailPeople) -> None:
    mail = people.write(ADA, plan_text([], say="Got it."))
    mail.add_attachment(b"milk, eggs", maintype="text", subtype="x-list", filename="../list.txt")
    people.deliver_again(ADA, mail)
    wait_for_mail(people, "Got it.")
    (kept,) = (hub.home.workspace / "received").iterdir()
    assert kept.read_bytes() == b"milk, eggs"


@pytest.mark.req("POL-03")
def test_a_question_says_what_to_write(hub: HubProcess, people: EmailPeople) -> None:
    skill = {"name": "Look", "instructions": "Look around.", "trigger_type": "manual"}
    people.say(ADA, plan_text([("memory_store_skill", skill)], say="It is set up."))
    question = wait_for_mail(people, "May I call")
    assert "/approve apr_" in read_body(question)


@pytest.mark.req("CHN-04")
@pytest.mark.incident("I-20")
def test_a_broken_connection_loses_nothing_and_reads_nothing_twice(hub: HubProcess, people: EmailPeople) -> None:
    people.servers.break_connections()
    people.say(ADA, plan_text([], say="After the break."))
    wait_for_mail(people, "After the break.")
    people.say(ADA, plan_text([], say="And after that."))
    wait_for_mail(people, "And after that.")
    assert sum("After the break." in text for text in people.texts(ADA)) == 1


@pytest.mark.req("CHN-04")
def test_a_renumbered_mailbox_is_read_on_without_a_repeat(hub: HubProcess, people: EmailPeople) -> None:
    people.say(ADA, plan_text([], say="Before."))
    wait_for_mail(people, "Before.")
    maildir = people.servers.folder / "mail" / people.address
    for index in maildir.glob("dovecot*"):
        index.unlink()
    people.servers.break_connections()
    people.say(ADA, plan_text([], say="Renumbered."))
    wait_for_mail(people, "Renumbered.")
    people.say(ADA, plan_text([], say="Onwards."))
    wait_for_mail(people, "Onwards.")
    assert sum("Before." in text for text in people.texts(ADA)) == 1


@pytest.mark.req("CHN-02")
def test_without_the_name_of_the_receiving_server_nobody_is_answered(
    tmp_path_factory: pytest.TempPathFactory, model: ScriptedServer, people: EmailPeople
) -> None:
    settings = people.settings | {"EMAIL_CHANNEL_AUTHSERV_ID": ""}
    hub = HubProcess(fresh_home(tmp_path_factory.mktemp("nobody")), model.openai_url, **only(), **settings).start()
    try:
        found = wait_for(lambda: status(hub) if status(hub)["state"] == "refused" else None, "it says so")
        assert "EMAIL_CHANNEL_AUTHSERV_ID" in str(found["trouble"])
    finally:
        hub.end()
