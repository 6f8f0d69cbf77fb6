"""The guardian rules for a call, and which messages may start a turn (GRD-03, GRD-05, GRD-11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection

from annabelle.core.errors import ScannerDown, SecurityBlocked
from annabelle.core.messages import CHAT_APPS, now
from annabelle.core.settings import Settings
from annabelle.core.tools import JsonObject
from annabelle.core.trust import ScanOutcome, parse_scans
from annabelle.hub.agents.config import Agent
from annabelle.hub.notices import Notices
from annabelle.store import message_state
from annabelle.store.database import Database
from annabelle.store.messages import StoredMessage
from annabelle.toolbox.call_hooks import GuardConfig, GuardRules
from annabelle.toolbox.guard import ContentGuard, ScanSubject, content_fingerprint, describe_findings, threat_kinds
from annabelle.toolbox.manifest import is_enabled, variable_name

GUARDIAN: Final = "guardian"
TOLD_AGAIN_AFTER: Final = timedelta(hours=1)
_INSISTED_WITHIN: Final = timedelta(hours=1)
_QUOTED: Final = "If a text that you quote is the reason, put it into a file and name that."
_SAY_OTHERWISE: Final = f"Say it in other words. {_QUOTED}"
_INSIST: Final = f"Say it in other words, or send it again to have it answered all the same. {_QUOTED}"
"""Channels where the sender waits for the response. In others the answer is sent into a chat."""


def make_guarding(
    settings: Settings, environment: Mapping[str, str], find_agent: Callable[[str], Agent | None], notices: Notices
) -> GuardConfig:
    """Guardian rules from the current config. A notice tells if the guardian is switched off."""
    switch = _switched_off_by(settings, environment)
    if switch is not None:
        notices.add("guardian", f"Nothing is scanned, because {switch} is false.", level="warning")
    everyone = GuardRules(
        enabled=switch is None,
        fail_mode=settings.guardian_fail_mode,
        messages=settings.guardian_scan_messages,
        changes=(parse_scans(settings.guardian_scan),),
    )

    def rules_for_agent(agent_id: str | None) -> GuardRules:
        found = find_agent(agent_id) if agent_id is not None else None
        if found is None:
            return everyone
        own = found.guardian
        return GuardRules(
            enabled=everyone.enabled,
            fail_mode=own.fail_mode or everyone.fail_mode,
            messages=everyone.messages if own.messages is None else own.messages,
            changes=(own.scan, *everyone.changes),
        )

    return GuardConfig(rules_for_agent, settings.guardian_timeout_seconds, enabled=switch is None)


def _switched_off_by(settings: Settings, environment: Mapping[str, str]) -> str | None:
    if not settings.guardian_enabled:
        return "GUARDIAN_ENABLED"
    return None if is_enabled(GUARDIAN, environment) else variable_name(GUARDIAN, "ENABLED")


class MessageGuard:
    """Scans people's messages before a turn starts. Only the outcome is stored.

    A person whose message was blocked may send the same words again, in the terminal or over the API, and is answered.
    """

    def __init__(self, guard: ContentGuard, database: Database) -> None:
        self._guard, self._database = guard, database

    async def admit(self, message: StoredMessage, agent_id: str) -> None:
        """Scan a message and store its risk. Raises SecurityBlocked if it may not start a turn."""
        rules = self._guard.rules(agent_id)
        if not rules.enabled or not rules.messages or message.source not in ("user", "outside_agent"):
            return
        about: JsonObject = {"message_id": message.id, "channel": message.channel, "agent_id": agent_id}
        subject = ScanSubject("message", message.channel, None, message.trace_id, about)
        try:
            found = await self._guard.scan(message.content, subject, rules)
        except ScannerDown as down:
            raise ScannerDown(
                f"The message could not be scanned, so it was not answered. {down.message}",
                hint="Send it again in a moment. annabelle status says what the guardian is doing.",
            ) from down
        may_insist = message.source == "user" and message.channel not in CHAT_APPS
        insists = found.risk == "high" and may_insist and await self._was_blocked(message)
        if insists:
            found = found.model_copy(update={"risk": "medium"})
        if found.risk in ("medium", "high") or found.unscanned:
            await self._store_risk(message.id, found)
        if insists or found.risk == "high":
            self._note_finding(message, found, "overruled" if insists else "blocked")
        if found.risk == "high":
            raise SecurityBlocked(
                "The guardian blocked this message, and nothing was done about it: it found "
                f"{_describe_threats(found)}.",
                hint=_INSIST if may_insist else _SAY_OTHERWISE,
            )

    async def _was_blocked(self, message: StoredMessage) -> bool:
        since = now() - _INSISTED_WITHIN
        return await self._database.read(lambda conn: message_state.was_blocked_since(conn, message, since))

    async def _store_risk(self, message_id: str, found: ScanOutcome) -> None:
        labels = [*(["suspicious"] if found.risk == "medium" else []), *(["unscanned"] if found.unscanned else [])]
        facts: JsonObject = {"risk": found.risk, "labels": labels}
        await self._database.write(lambda conn: message_state.add_facts(conn, message_id, facts))

    def _note_finding(self, message: StoredMessage, found: ScanOutcome, verdict: str) -> None:
        audit = self._guard.audit
        if audit is not None:
            facts: JsonObject = {
                "message_id": message.id,
                "channel": message.channel,
                "verdict": verdict,
                "score": found.score,
                "threats": threat_kinds(found),
                "scan_id": found.scan_id,
                **content_fingerprint(message.content),
            }
            audit.note("message", facts, message.trace_id)


def was_sender_told(conn: Connection, message: StoredMessage) -> bool:
    """Whether the sender was told of a block recently, so that a chat is not answered for each message."""
    if message.channel not in CHAT_APPS:
        return False
    return message_state.was_told_since(conn, message, now() - TOLD_AGAIN_AFTER)


def _describe_threats(found: ScanOutcome) -> str:
    return ", ".join(threat_kinds(found)) or describe_findings(found)
