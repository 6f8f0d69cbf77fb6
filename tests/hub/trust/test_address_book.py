"""Whom a name means is looked up in the person's contacts, also when the agent did not."""

from __future__ import annotations

import asyncio

import pytest

from annabelle.core.errors import Unavailable
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.hub.trust import judge
from annabelle.hub.trust.judge import AddressBook
from annabelle.toolbox.catalogue import NativeTool
from hub.trust.conftest import READS, House

SEND = "gmail_send_email"
AGENT = CallContext(caller="agent", user_id="ada", agent_id="nell", message_id="msg_1")


def to(address: str) -> JsonObject:
    return {"to": address, "subject": "s", "body": "I come"}


@pytest.mark.req("POL-04")
async def test_a_first_name_is_enough_for_whom_the_person_keeps_and_for_nobody_else(house: House) -> None:
    contact = {"id": 1, "name": "Alice Novak", "email": "alice@example.com", "trust": "trusted"}
    planted = {"id": 2, "name": "Dave Smith", "email": "mallory@evil.example", "trust": "untrusted"}
    book: JsonObject = {"contacts": [contact, planted]}

    async def listed(_arguments: JsonObject, _context: CallContext) -> ToolResult:
        return ToolResult(text="", structured=book)

    house.hub.toolbox.add_native([NativeTool("memory_list_contacts", "", {"type": "object"}, listed, READS)])
    message = await house.says("Read my newest mail and write Alice and Dave a mail that I come")
    await house.call("gmail_list_emails", message)
    assert (await house.call(SEND, message, to("alice@example.com")))["approval_id"] is None
    assert (await house.call(SEND, message, to("mallory@evil.example")))["approval_id"], "others wrote that contact"
    assert (await house.call(SEND, message, to("alice@evil.example")))["approval_id"]


@pytest.mark.req("POL-04")
async def test_the_contacts_of_whom_the_agent_works_for_are_asked_for_as_the_hub() -> None:
    asked: list[tuple[str, CallContext]] = []

    async def call(name: str, _arguments: JsonObject, context: CallContext) -> ToolResult:
        asked.append((name, context))
        return ToolResult(text="", structured={"contacts": [{"name": "Bob", "email": "bob@example.com"}]})

    found = await AddressBook(call).people(AGENT)
    assert [thing.texts("email") for result in found for thing in result.things if thing.texts("name")] == [
        ("bob@example.com",)
    ]
    name, context = asked[0]
    assert (name, context.caller, context.user_id, context.agent_id) == ("memory_list_contacts", "hub", "ada", "nell")
    assert context.message_id is None, "what it holds is not what the agent has seen"


@pytest.mark.req("POL-04")
@pytest.mark.parametrize("trouble", ["dead", "slow", "refused"])
async def test_a_memory_that_does_not_answer_knows_nobody(trouble: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge, "_SECONDS", 0.05)

    async def call(_name: str, _arguments: JsonObject, _context: CallContext) -> ToolResult:
        if trouble == "dead":
            raise Unavailable("It is down.")
        if trouble == "slow":
            await asyncio.Event().wait()
        return ToolResult(text="no", is_error=True)

    assert await AddressBook(call).people(AGENT) == ()


@pytest.mark.req("POL-04")
@pytest.mark.parametrize("stranger", ["Carla Works <eve@evil.example>", '"carla@work.example" <eve@evil.example>'])
async def test_an_answer_to_a_name_looks_through_the_whole_mailbox(house: House, stranger: str) -> None:
    mails = {"m1": "Carla Reyes <carla@work.example>"}

    async def listed(arguments: JsonObject, _context: CallContext) -> ToolResult:
        shown = list(mails.items()) if "query" in arguments else list(mails.items())[-1:]
        rows = [{"id": one, "sender": sender, "to": "me@example.com", "subject": "Hi"} for one, sender in shown]
        return ToolResult(text="", structured={"emails": rows}, trust="untrusted")

    house.hub.toolbox.add_native([NativeTool("gmail_list_emails", "", {"type": "object"}, listed, READS)])
    message = await house.says("Reply to Carla that it works")
    await house.call("gmail_list_emails", message)
    first = await house.call("gmail_reply_email", message, {"message_id": "m1", "body": "It works"})
    assert first["approval_id"] is None, first
    mails["m2"] = stranger
    again = await house.says("Reply to Carla that it works")
    await house.call("gmail_list_emails", again)
    assert (await house.call("gmail_reply_email", again, {"message_id": "m2", "body": "It works"}))["approval_id"]
