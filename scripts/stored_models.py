"""The models whose fields stand in files and databases: a field that is renamed is not found in what is there."""

from __future__ import annotations

from pydantic import BaseModel

from annabelle.core import connections, contract, memory, tools
from annabelle.hub.agents import config as agents
from annabelle.hub.flows import learn_facts
from annabelle.hub.forgetting import marker
from annabelle.hub.security import users_file
from annabelle.hub.stopping import halts
from annabelle.hub.subagents import brief
from annabelle.policy.rules import rule
from annabelle.servers.codexec.scripts import script
from annabelle.servers.everyday import feed_shelf, places, rates
from annabelle.servers.filer import audit as filer_audit
from annabelle.servers.gmail.mail import local_filters, seen
from annabelle.servers.kit.files import grants
from annabelle.servers.telegram import subscriptions
from annabelle.thinker.compress import desk, notes
from annabelle.thinker.loop import parking
from annabelle.thinker.session import records
from annabelle.toolbox.external import entries, pins

# pyright: reportPrivateUsage=false
MODELS: dict[str, type[BaseModel]] = {
    "config/agents.json": agents.AgentsConfig,
    "config/external-mcps.json, a server": entries.Entry,
    "config/filer-grants.json": grants.GrantsFile,
    "config/users.json": users_file.Users,
    "connections/google.json": connections.KINDS["google"],
    "connections/mail.json": connections.KINDS["mail"],
    "connections/telegram.json": connections.KINDS["telegram"],
    "data/forgetting.json": marker.Pending,
    "data/pinned-servers.json, a pin": pins.Pin,
    "data/stopped.json": halts._Written,
    "codexec: a script": script.Script,
    "everyday: feeds": feed_shelf.Shelf,
    "everyday: places": places.Place,
    "everyday: rates": rates._Kept,
    "gmail: filters": local_filters._File,
    "gmail: seen mail": seen._File,
    "telegram: subscriptions": subscriptions._Kept,
    "logs/filer-audit.jsonl, a line": filer_audit.AuditEntry,
    "sessions, header": records.Header,
    "sessions, turn": records.TurnRecord,
    "sessions, compaction": records.Compaction,
    "sessions, archive": records.Archive,
    "agents/ID/workspaces, a thread": desk.Desk,
    "parked_turns.turn": contract.ParkedTurn,
    "parked_turns.turn, progress": parking.Counters,
    "rules.match": rule.Match,
    "tool_calls.result": tools.ToolResult,
    "tasks.request, context": tools.CallContext,
    "tasks.request of a subagent": brief.SubagentAsk,
    "memory, origin": memory.Provenance,
    "workflow turn, input": contract.TurnBrief,
    "workflow turn, output": contract.TurnResult,
    "workflow turn, step think": notes.Notes,
    "workflow extract-facts, input": contract.ExtractBrief,
    "workflow extract-facts, output": contract.ExtractResult,
    "workflow tidy-facts, input": contract.TidyBrief,
    "workflow tidy-facts, output": contract.TidyResult,
    "workflow learn_facts, input": learn_facts.ToLearn,
    "workflow learn_facts, output": learn_facts.Learnt,
    "workflow learn_facts, step store": learn_facts.KeptFact,
}
