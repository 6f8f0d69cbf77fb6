"""Mail and calendar as a real process, spoken to with the official client."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import annabelle.servers.mail_calendar
from annabelle.core.connections import write_connection
from annabelle.core.home import Home
from annabelle.core.ids import new_id
from servers.mail_calendar.mails import mail
from servers.speaking import Connect
from support.google_double.mail import MailPart
from support.google_double.server import GoogleDouble
from support.mail_servers import MailServers

GMAIL = ("-m", "annabelle.servers.mail_calendar")
COMPOSED = ({"to", "subject", "body"}, {"cc", "bcc", "is_html"})

CATALOGUE: dict[str, tuple[set[str], set[str]]] = {
    "list_emails": (set(), {"query", "max_results", "label_ids", "page_token"}),
    "get_email": ({"message_id"}, set()),
    "send_email": COMPOSED,
    "reply_email": ({"message_id", "body"}, {"is_html"}),
    "delete_email": ({"message_id"}, set()),
    "mark_read": ({"message_id", "read"}, set()),
    "modify_labels": ({"message_id"}, {"add_label_ids", "remove_label_ids"}),
    "get_new_emails": (set(), {"clear"}),
    "list_drafts": (set(), set()),
    "create_draft": COMPOSED,
    "update_draft": (COMPOSED[0] | {"draft_id"}, COMPOSED[1]),
    "send_draft": ({"draft_id"}, set()),
    "delete_draft": ({"draft_id"}, set()),
    "list_labels": (set(), set()),
    "create_label": ({"name"}, set()),
    "delete_label": ({"label_id"}, set()),
    "list_attachments": ({"message_id"}, set()),
    "get_attachment": ({"message_id", "attachment_id"}, set()),
    "list_filters": (set(), set()),
    "get_filter": ({"filter_id"}, set()),
    "create_filter": ({"criteria", "action"}, set()),
    "delete_filter": ({"filter_id"}, set()),
}
CALENDAR = {
    "list_calendars", "list_events", "get_event", "create_event", "update_event", "delete_event", "quick_add_event",
    "find_free_time",
}  # fmt: skip
READS = {
    "list_emails", "get_email", "list_drafts", "list_labels", "list_attachments", "list_filters", "get_filter",
}  # fmt: skip
DESTROYS = {
    "send_email", "reply_email", "delete_email", "update_draft", "send_draft", "delete_draft", "delete_label",
    "create_filter", "delete_filter",
}  # fmt: skip
NOT_TWICE = {
    "send_email", "reply_email", "get_new_emails", "create_draft", "send_draft", "create_label", "get_attachment",
    "create_filter",
}  # fmt: skip


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_the_tools_are_as_the_catalogue_has_them_and_say_what_they_may_do(as_process: Connect) -> None:
    async with as_process(*GMAIL) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools.keys() == {*CATALOGUE, *CALENDAR, "readiness"}
    for name, (required, optional) in CATALOGUE.items():
        schema, hints = tools[name].input_schema, tools[name].annotations
        assert set(schema.get("required", [])) == required, name
        assert optional <= schema["properties"].keys(), name
        assert all(value["description"] for value in schema["properties"].values()), name
        assert "$ref" not in str(schema)
        assert hints is not None
        assert hints.read_only_hint is (name in READS), name
        assert hints.destructive_hint is (name in DESTROYS), name
        assert hints.idempotent_hint is (name not in NOT_TWICE), name
        assert hints.open_world_hint is True
    filters = tools["create_filter"].input_schema["properties"]
    assert set(filters["criteria"]["properties"]) == {
        "from", "to", "subject", "query", "has_attachment", "size", "size_comparison",
    }  # fmt: skip
    assert set(filters["action"]["properties"]) == {"add_label_ids", "remove_label_ids", "forward"}


@pytest.mark.req("SRV-MAI", "SRV-ALL")
async def test_a_server_without_an_account_lists_its_tools_and_says_what_to_run(as_process: Connect) -> None:
    async with as_process(*GMAIL) as client:
        listed = {tool.name for tool in (await client.list_tools()).tools}
        asked = await client.call_tool("readiness", {})
        refused = await client.call_tool("send_email", {"to": "a@example.org", "subject": "s", "body": "b"})
    assert listed > set(CATALOGUE)
    assert asked.structured_content["ready"] is False
    assert refused.is_error
    assert refused.structured_content["error"]["code"] == "unavailable"
    assert "annabelle connect google" in refused.content[0].text


@pytest.mark.req("SRV-MAI")
async def test_mail_is_read_and_answered_over_the_protocol_at_google(
    as_process: Connect, home: Home, google_double: tuple[GoogleDouble, MailPart]
) -> None:
    double, part = google_double
    part.clear()
    double.app.clear()
    write_connection(home, "google", double.account())
    message_id = part.deliver(mail("Lunch", "Shall we?"))
    meta = {"annabelle": {"agent_id": "annabelle", "call_id": new_id("call")}}
    async with as_process(*GMAIL, GOOGLE_API_URL=double.url) as client:
        read = await client.call_tool("get_email", {"message_id": message_id})
        for _ in range(2):
            answered = await client.call_tool("reply_email", {"message_id": message_id, "body": "Yes"}, meta=meta)
    assert read.structured_content["body"] == "Shall we?"
    assert answered.structured_content["already_sent"] is True
    assert len(part.sent) == 1


@pytest.mark.req("SRV-MAI")
async def test_mail_is_read_and_answered_over_the_protocol_in_any_mailbox(
    mail_servers: MailServers, as_process: Connect, home: Home
) -> None:
    address = mail_servers.new_address()
    write_connection(home, "mail", mail_servers.account(address))
    mail_servers.deliver(address, mail("Lunch", "Shall we?", files={"menu.txt": b"soup"}))
    async with as_process(*GMAIL) as client:
        listed = await client.call_tool("list_emails", {})
        message_id = listed.structured_content["emails"][0]["id"]
        saved = await client.call_tool("get_attachment", {"message_id": message_id, "attachment_id": "2"})
        await client.call_tool("reply_email", {"message_id": message_id, "body": "Yes"})
    assert (home.workspace / saved.structured_content["path"]).read_bytes() == b"soup"
    assert len(mail_servers.sent_by(address)) == 1


@pytest.mark.req("EXT-01")
def test_the_manifest_says_what_the_toolbox_needs() -> None:
    manifest = tomllib.loads((Path(annabelle.servers.mail_calendar.__file__).parent / "manifest.toml").read_text())
    assert (manifest["name"], manifest["group"], manifest["sensitive"]) == ("gmail", "mail", True)
    assert manifest["scan"] == {"input": True, "output": True}
    assert not any("SECRET" in name or "TOKEN" in name or "KEY" in name for name in manifest["env"])
