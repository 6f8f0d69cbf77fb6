"""What people send: read before a turn starts, blocked, labelled, or sent again later; and whose rules hold."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from sqlalchemy import Connection, update

from annabelle.core.config_file import parse_config
from annabelle.core.contract import TurnResult
from annabelle.core.errors import ConfigMistake, ScannerDown, SecurityBlocked
from annabelle.core.home import Home
from annabelle.core.messages import OWNER, InboundMessage, now
from annabelle.core.settings import Settings
from annabelle.core.trust import ScanDirections
from annabelle.hub.agents.config import AgentsConfig, AgentsFile
from annabelle.hub.conversations.message_workflow import deliver
from annabelle.hub.notices import Notices
from annabelle.hub.trust.guard import MessageGuard, make_guarding
from annabelle.store import messages, threads, tool_calls
from annabelle.store.database import Database, sqlite_url
from annabelle.store.messages import QueueLimits, StoredMessage
from annabelle.store.tables import messages as table
from annabelle.toolbox.call_hooks import GuardRules
from annabelle.toolbox.guard import ContentGuard
from support.guarding import MemoryAudit, WordScanner

ON = ScanDirections()
BLOCKED = SecurityBlocked("The guardian blocked this message.")


@dataclass
class House:
    """A database, and a guard that goes by words."""

    database: Database
    scanner: WordScanner = field(default_factory=WordScanner)
    audit: MemoryAudit = field(default_factory=MemoryAudit)
    rules: GuardRules = field(default_factory=GuardRules)

    async def said(self, text: str, channel: str = "api", sender: str = "me") -> StoredMessage:
        inbound = InboundMessage(channel=channel, chat_id="main", sender_id=sender, text=text)

        def enter(conn: Connection) -> StoredMessage:
            thread = threads.find_or_create_thread(conn, channel=channel, chat_id="main", user_id=OWNER, agent_id="a")
            return messages.queue_message(conn, thread, inbound, QueueLimits()).message

        return await self.database.write(enter)

    async def admit(self, message: StoredMessage) -> None:
        await MessageGuard(ContentGuard(self.scanner, lambda agent_id: self.rules, self.audit), self.database).admit(
            message, "a"
        )

    async def look(self, message: StoredMessage) -> StoredMessage:
        return await self.database.read(lambda conn: messages.load_message(conn, message.id))

    async def block(self, message: StoredMessage) -> StoredMessage | None:
        """Deliver the refusal; the answer that was sent, if one was."""
        result = TurnResult(message_id=message.id, success=False, error=BLOCKED.body())
        return (await self.database.write(lambda conn: deliver(conn, message.id, result))).result.reply


@pytest.fixture
async def house(home: Home) -> AsyncIterator[House]:
    database = await Database.open(sqlite_url(home.database_file))
    yield House(database)
    await database.close()


@pytest.mark.req("GRD-04", "GRD-11")
async def test_a_message_with_a_threat_is_refused_and_kept_in_the_audit_without_its_words(house: House) -> None:
    message = await house.said("EVIL words")
    with pytest.raises(SecurityBlocked, match="prompt_injection") as blocked:
        await house.admit(message)
    assert "EVIL" not in f"{blocked.value.message}{blocked.value.hint}"
    assert house.scanner.asked == [("EVIL words", "api", "message")]
    (noted,) = house.audit.of("message")
    assert (noted["message_id"], noted["verdict"], noted["length"]) == (message.id, "blocked", len("EVIL words"))
    assert noted["threats"] == ["prompt_injection"]
    assert len(str(noted["hash"])) == 16
    assert "EVIL" not in str(house.audit.notes)
    assert [scan["direction"] for scan in house.audit.of("scan")] == ["message"]


@pytest.mark.req("GRD-04", "GRD-11")
async def test_a_person_whose_message_is_blocked_can_send_it_all_the_same(house: House) -> None:
    with pytest.raises(SecurityBlocked) as blocked:
        await house.admit(await house.said("EVIL words"))
    assert "send it again" in (blocked.value.hint or "")
    again = await house.said("EVIL words")
    await house.admit(again)
    await house.admit(again)  # as a turn that begins anew does
    assert (await house.look(again)).metadata == {"risk": "medium", "labels": ["suspicious"]}
    assert [noted["verdict"] for noted in house.audit.of("message")] == ["blocked", "overruled", "overruled"]
    for other in (
        await house.said("EVIL words, others"),
        await house.said("EVIL words", sender="another program"),
        await house.said("EVIL words", channel="telegram"),
        await house.said("EVIL words", channel="telegram"),
    ):
        with pytest.raises(SecurityBlocked):
            await house.admit(other)


@pytest.mark.req("GRD-11")
async def test_a_block_of_long_ago_and_an_agent_s_words_have_to_be_said_otherwise(house: House) -> None:
    old = await house.said("EVIL words")
    with pytest.raises(SecurityBlocked):
        await house.admit(old)
    long_ago = now() - timedelta(minutes=61)
    await house.database.write(
        lambda conn: conn.execute(update(table).where(table.c.id == old.id).values(created_at=long_ago))
    )
    for _ in range(2):
        message = await house.said("EVIL words")
        await house.database.write(
            lambda conn, id=message.id: conn.execute(
                update(table).where(table.c.id == id).values(source="outside_agent")
            )
        )
        with pytest.raises(SecurityBlocked) as blocked:
            await house.admit(await house.look(message))
        assert "send it again" not in (blocked.value.hint or "")
    with pytest.raises(SecurityBlocked):
        await house.admit(await house.said("EVIL words"))


@pytest.mark.req("GRD-11")
async def test_a_blocked_message_is_not_among_the_words_that_back_a_call(house: House) -> None:
    await house.said("good words")
    with pytest.raises(SecurityBlocked):
        await house.admit(await house.said("EVIL words"))
    last = await house.said("last words")
    backing = await house.database.read(lambda conn: tool_calls.list_person_words(conn, last.id))
    record = await house.database.read(lambda conn: tool_calls.read_turn_provenance(conn, last.id))
    assert backing == [record.words, *record.earlier] == ["last words", "good words"]


@pytest.mark.req("GRD-04")
async def test_a_middle_risk_is_kept_with_the_message_and_a_clean_one_leaves_no_trace_in_it(house: House) -> None:
    doubtful, clean = await house.said("DOUBT"), await house.said("hello")
    await house.admit(doubtful)
    await house.admit(clean)
    assert (await house.look(doubtful)).metadata == {"risk": "medium", "labels": ["suspicious"]}
    assert (await house.look(clean)).metadata == {}


@pytest.mark.req("GRD-05", "GRD-04")
async def test_while_nobody_can_look_closed_asks_to_send_it_again_and_open_marks_it(house: House) -> None:
    house.scanner.down = True
    message = await house.said("hello")
    with pytest.raises(ScannerDown, match="could not be scanned") as down:
        await house.admit(message)
    assert "Send it again" in (down.value.hint or "")
    house.rules = GuardRules(fail_mode="open")
    await house.admit(message)
    assert (await house.look(message)).metadata == {"risk": "none", "labels": ["unscanned"]}


@pytest.mark.req("GRD-04")
async def test_what_is_not_to_be_scanned_is_not(house: House) -> None:
    message = await house.said("EVIL")
    for rules in (GuardRules(messages=False), GuardRules(enabled=False)):
        house.rules = rules
        await house.admit(message)
    house.rules = GuardRules()
    await house.database.write(
        lambda conn: conn.execute(update(table).where(table.c.id == message.id).values(source="decision"))
    )
    await house.admit(await house.look(message))
    assert house.scanner.asked == [], "our own note of a decision is in nobody else's words"


@pytest.mark.req("GRD-11")
async def test_a_chat_is_told_once_an_hour_and_whoever_waits_for_an_answer_each_time(house: House) -> None:
    first = await house.block(await house.said("EVIL 1", "telegram", "mallory"))
    assert first is not None
    assert first.metadata["retryable"] is False
    silent = await house.said("EVIL 2", "telegram", "mallory")
    assert await house.block(silent) is None
    assert (await house.look(silent)).state == "failed"
    assert await house.block(await house.said("EVIL", "telegram", "somebody else")) is not None
    long_ago = now() - timedelta(minutes=61)
    await house.database.write(
        lambda conn: conn.execute(update(table).where(table.c.id == first.id).values(created_at=long_ago))
    )
    assert await house.block(await house.said("EVIL 3", "telegram", "mallory")) is not None
    for _ in range(2):
        assert await house.block(await house.said("EVIL", "api")) is not None


@pytest.mark.req("GRD-11")
async def test_telling_of_a_block_again_changes_nothing(house: House) -> None:
    message = await house.said("EVIL", "telegram")
    told = await house.block(message)
    assert told is not None
    assert await house.block(message) == told
    assert len(await house.database.read(lambda conn: messages.list_replies(conn, message))) == 1


def rules_of(agents: str, **settings: object) -> tuple[GuardRules, GuardRules, Notices]:
    """The rules of the agent `a` and of the install."""
    config, notices = parse_config(AgentsConfig, agents, "agents.json"), Notices()
    watch = make_guarding(Settings.model_validate(settings), {}, config.agent, notices)
    return watch.rules("a"), watch.rules(None), notices


@pytest.mark.req("GRD-03", "GRD-04", "GRD-11")
def test_an_agent_may_want_other_scans_than_the_rest_of_the_install() -> None:
    guardian = {"failMode": "open", "messages": False, "scan": {"filer": {"input": False}, "*": {"output": False}}}
    agents = json.dumps({"agents": [{"agentId": "a", "guardian": guardian}]})
    own, install, notices = rules_of(agents, guardian_scan="notes=off/off, filer=on/on")
    assert (own.fail_mode, own.messages) == ("open", False)
    assert own.flags("filer", ON) == ScanDirections(input=False, output=False)
    assert own.flags("notes", ON) == ScanDirections(input=False, output=False)
    assert own.flags("web", ON) == ScanDirections(output=False)
    assert (install.fail_mode, install.messages) == ("closed", True)
    assert install.flags("filer", ON) == ON
    assert install.flags("notes", ON) == ScanDirections(input=False, output=False)
    plain, same, _ = rules_of('{"agents": [{"agentId": "a"}]}', guardian_fail_mode="open")
    assert (plain.fail_mode, plain.messages, plain.flags("filer", ON)) == (same.fail_mode, True, ON)
    careful = '{"agents": [{"agentId": "a", "guardian": {"failMode": "closed", "messages": true}}]}'
    own, install, _ = rules_of(careful, guardian_fail_mode="open", guardian_scan_messages=False)
    assert (own.fail_mode, own.messages, install.fail_mode, install.messages) == ("closed", True, "open", False)
    assert notices.all() == []


@pytest.mark.req("GRD-11")
@pytest.mark.parametrize(
    ("guardian", "field"),
    [
        ({"failMode": "ajar"}, "agents.0.guardian.failMode"),
        ({"scan": {"filer": {"inptu": False}}}, "agents.0.guardian.scan.filer.inptu"),
        ({"scan": {"filer": {"input": "perhaps"}}}, "agents.0.guardian.scan.filer.input"),
        ({"scan": {"no such*": {}}}, "agents.0.guardian.scan.no such*"),
        ({"scann": {}}, "agents.0.guardian.scann"),
    ],
)
def test_a_mistake_in_an_agents_scans_is_named_and_the_last_good_config_stays(
    home: Home, guardian: object, field: str
) -> None:
    bad = json.dumps({"agents": [{"agentId": "a", "guardian": guardian}]})
    with pytest.raises(ConfigMistake) as mistake:
        parse_config(AgentsConfig, bad, "agents.json")
    assert field in mistake.value.message
    file = AgentsFile(home, Settings.model_validate({}), Notices())
    home.agents_file.write_text('{"agents": [{"agentId": "a", "guardian": {"messages": false}}]}')
    assert file.load().default.guardian.messages is False
    home.agents_file.write_text(bad)
    assert file.load_if_changed() is None
    assert file.load().default.guardian.messages is False


@pytest.mark.req("GRD-05")
def test_a_guardian_that_is_switched_off_is_said_to_be() -> None:
    def off(environment: dict[str, str], **settings: object) -> tuple[bool, list[str]]:
        notices = Notices()
        watch = make_guarding(Settings.model_validate(settings), environment, lambda agent_id: None, notices)
        assert watch.enabled is watch.rules("a").enabled
        return watch.enabled, [notice.text for notice in notices.all()]

    assert off({}) == (True, [])
    assert off({}, guardian_enabled=False) == (False, ["Nothing is scanned, because GUARDIAN_ENABLED is false."])
    switched = off({"GUARDIAN_MCP_ENABLED": "off"})
    assert switched == (False, ["Nothing is scanned, because GUARDIAN_MCP_ENABLED is false."])
