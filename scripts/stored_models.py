"""The models whose fields stand in files and databases: a field that is renamed is not found in what is there."""

from __future__ import annotations

from pydantic import BaseModel

from annabelle.core import connections, contract, tools, trust
from annabelle.hub.agents import config as agents, halts
from annabelle.hub.forgetting import forget_journal
from annabelle.hub.memory import fact_extraction
from annabelle.hub.security import users_file
from annabelle.hub.tasks import subagents
from annabelle.policy.rules import rule
from annabelle.servers.codexec import script_library
from annabelle.servers.everyday import currency, feeds, forecasts
from annabelle.servers.filer import operations as filer_audit
from annabelle.servers.kit.files import paths
from annabelle.servers.mail_calendar.mail import imap_filters, read
from annabelle.servers.telegram import new_messages
from annabelle.store import home_archive
from annabelle.thinker.compression import model_notes, workspace
from annabelle.thinker.loop import parked_turn
from annabelle.thinker.prompt import tool_hints
from annabelle.thinker.session import records
from annabelle.toolbox.external import entries, pins

# pyright: reportPrivateUsage=false
MODELS: dict[str, type[BaseModel]] = {
    "config/agents.json": agents.AgentsConfig,
    "config/external-mcps.json, a server": entries.ExternalEntry,
    "config/filer-grants.json": paths.GrantsFile,
    "config/users.json": users_file.UserList,
    "connections/google.json": connections.KINDS["google"],
    "connections/mail.json": connections.KINDS["mail"],
    "connections/telegram.json": connections.KINDS["telegram"],
    "data/forgetting.json": forget_journal.ForgetRequest,
    "data/pinned-servers.json, a pin": pins.ServerPin,
    "data/stopped.json": halts._HaltsFile,
    "a backup, manifest.json": home_archive.ArchiveManifest,
    "a backup, an entry": home_archive.ArchiveEntry,
    "codexec: a script": script_library.Script,
    "everyday: feeds": feeds.FeedFile,
    "everyday: places": forecasts.GeoPlace,
    "everyday: rates": currency._RatesFile,
    "gmail: filters": imap_filters._FilterFile,
    "gmail: seen mail": read._CursorFile,
    "telegram: subscriptions": new_messages._SubscriptionFile,
    "logs/filer-audit.jsonl, a line": filer_audit.AuditEntry,
    "sessions, header": records.SessionHeader,
    "sessions, turn": records.SessionTurn,
    "sessions, compaction": records.Compaction,
    "sessions, archive": records.Archive,
    "agents/ID/workspaces, a thread": workspace.WorkspaceState,
    "agents/ID/tool-patterns.jsonl, a line": tool_hints.ToolPattern,
    "parked_turns.turn": contract.ParkedTurn,
    "parked_turns.turn, progress": parked_turn.ParkedCounters,
    "rules.match": rule.RuleMatch,
    "tool_calls.result": tools.ToolResult,
    "tasks.request, context": tools.CallContext,
    "tasks.request of a subagent": subagents.SubagentRequest,
    "memory, origin": trust.Provenance,
    "workflow turn, input": contract.TurnBrief,
    "workflow turn, output": contract.TurnResult,
    "workflow turn, step think": model_notes.CompressionNotes,
    "workflow extract-facts, input": contract.ExtractBrief,
    "workflow extract-facts, output": contract.ExtractResult,
    "workflow tidy-facts, input": contract.TidyBrief,
    "workflow tidy-facts, output": contract.TidyFactsResult,
    "workflow learn_facts, input": fact_extraction.ExtractionRequest,
    "workflow learn_facts, output": fact_extraction.ExtractionOutcome,
    "workflow learn_facts, step store": fact_extraction.ExtractedFactRecord,
}
