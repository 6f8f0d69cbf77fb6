"""What a hub is built on: its settings, storage, people and audit. `boot` adds the rest."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from dotenv import dotenv_values

from annabelle.core.clock import Clock, SystemClock
from annabelle.core.home import Home
from annabelle.core.secrets.redactor import Redactor, environment_secrets
from annabelle.core.settings import Settings
from annabelle.core.trace import TraceFile
from annabelle.durable.engine import Durable
from annabelle.embeddings.metering import LEDGER_TOKEN, LEDGER_URL
from annabelle.hub.base import HubBase, HubLifecycle, HubStorage
from annabelle.hub.context import HubSecurity
from annabelle.hub.conversations.event_log import EventFanout, EventLog
from annabelle.hub.instance import hub_address
from annabelle.hub.security.audit import LoginAudit, audit_user_changes, close_audit, open_audit
from annabelle.hub.security.identities import HomeUsers, Identities
from annabelle.store.database import Database, sqlite_url
from annabelle.store.hub_lock import HubLock
from annabelle.toolbox.config import ToolboxConfig
from annabelle.toolbox.process.forkserver_process import ForkServerProcess

CLAIMS_OWNER: Final = "hub"
"""The same after a restart, so that the next hub takes over the claims. `HubLock` excludes a second hub."""


@dataclass(frozen=True, slots=True)
class HubStart:
    """What `__main__` prepares before the heavy imports."""

    home: Home
    settings: Settings
    redact: Redactor
    socket: socket.socket
    forkserver: ForkServerProcess | None
    clock: Clock = field(default_factory=SystemClock)
    restored: str | None = None
    """What came of restoring a backup, if one was asked for."""


def make_base(start: HubStart) -> HubBase:
    environment = _environment(start.home)
    start.redact.learn(environment_secrets(environment))
    base = HubBase(
        home=start.home,
        settings=start.settings,
        environment=environment,
        redact=start.redact,
        address=hub_address(start.socket),
        lifecycle=HubLifecycle(start.clock),
    )
    if start.restored is not None:
        base.notices.add("restore", start.restored, tell_owner=True)
    return base


async def open_storage(base: HubBase, fanout: EventFanout, stack: AsyncExitStack) -> HubStorage:
    home, synchronous, shared = base.home, base.settings.sqlite_synchronous, base.database_url
    if shared is not None:
        # First, because opening migrates the database, which must not happen under a running hub.
        lock = await HubLock.acquire(shared)
        if lock is not None:
            stack.push_async_callback(lock.release)
    database = await Database.open(
        shared or sqlite_url(home.database_file), synchronous=synchronous, backups=home.backups
    )
    stack.push_async_callback(database.close)
    durable = Durable(
        name="annabelle",
        executor_id=CLAIMS_OWNER,
        database_url=shared or sqlite_url(home.flows_file),
        schema="flows",
        synchronous=synchronous,
    )
    traces = TraceFile(home.traces_file, "hub", base.redact)
    return HubStorage(database=database, durable=durable, events=EventLog(database, fanout), traces=traces)


def build_security(
    base: HubBase, on_revoked: Callable[[str], None], stack: AsyncExitStack, *, token: str
) -> HubSecurity:
    audit = open_audit(base)
    stack.push_async_callback(asyncio.to_thread, close_audit, audit)
    logins = LoginAudit(audit)
    stack.callback(logins.flush_refused)
    users = HomeUsers(base.home.users_file, base.home.token_uses_file, base.notices)
    identities = Identities(token, users=users, on_revoked=on_revoked, on_admitted=logins.admitted)
    audit_user_changes(users, audit)
    return HubSecurity(identities=identities, users=users, logins=logins, audit=audit)


def make_toolbox_config(base: HubBase, identities: Identities) -> ToolboxConfig:
    # A server gets these only if its manifest names them.
    ledger_access = {LEDGER_URL: base.address, LEDGER_TOKEN: identities.admit_servers()}
    base.redact.learn([ledger_access[LEDGER_TOKEN]])
    return ToolboxConfig.from_settings(base.settings, base.home, {**base.environment, **ledger_access})


def _environment(home: Home) -> dict[str, str]:
    """The process environment, with settings.env as defaults."""
    kept = dotenv_values(home.settings_file) if home.settings_file.exists() else {}
    return {name: value for name, value in kept.items() if value is not None} | dict(os.environ)
