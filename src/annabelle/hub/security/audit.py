"""The audit of a running hub, including logins and configuration changes."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from typing import Final

from annabelle import __version__
from annabelle.core.home import Home
from annabelle.core.ports import AuditTrail
from annabelle.core.settings import Settings
from annabelle.core.trust import AuditKind
from annabelle.hub.base import HubBase
from annabelle.hub.security.identities import CallerIdentity, HomeUsers
from annabelle.hub.security.users_file import UserList
from annabelle.store.audit.chain import AuditChain, AuditLimits
from annabelle.store.audit.records import AuditChainRecord, AuditPaths, AuditQuery, read_latest
from annabelle.store.audit.writer import AuditWriter
from annabelle.toolbox.facade import Toolbox
from annabelle.toolbox.status import ToolboxNotice

TOPIC: Final = "audit"
_SAFETY_KINDS: Final[tuple[AuditKind, ...]] = ("approval", "rule", "login", "stop", "config", "forget", "audit")
"""What is about safety. Calls of tools and starts of servers are many, as are scans that find nothing."""
_SCANS_READ: Final = 1000


def read_safety_records(home: Home, last: int) -> list[AuditChainRecord]:
    """The newest records about safety, oldest first: what was refused, asked, found or changed."""
    paths = AuditPaths.from_home(home)
    scans = [one for one in read_latest(paths, AuditQuery(_SCANS_READ, "scan")) if one.facts.get("verdict") != "none"]
    found = [one for kind in _SAFETY_KINDS for one in read_latest(paths, AuditQuery(last, kind))]
    return sorted(found + scans, key=lambda record: record.n)[-last:]


def open_audit(base: HubBase) -> AuditWriter:
    """Opens the audit with fingerprints of the files this hub started from."""
    loop, notices, settings = asyncio.get_running_loop(), base.notices, base.settings

    def tell(text: str | None) -> None:
        if text is None:
            notices.clear(TOPIC)
        else:
            notices.add(TOPIC, text, level="error")

    def trouble(text: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, text)

    limits = AuditLimits(settings.audit_max_bytes, settings.audit_keep_files)
    audit = AuditWriter(AuditChain(AuditPaths.from_home(base.home), limits, base.redact), trouble)
    audit.start()
    audit.note("server", {"event": "start", "server": "hub", "version": __version__})
    audit.note("config", {"event": "in_force", "files": _fingerprints(base.home, settings)})
    return audit


def close_audit(audit: AuditWriter) -> None:
    """Write the last record of a clean stop. It is missing if the hub was killed."""
    audit.note("server", {"event": "stop", "server": "hub"})
    audit.stop()


def _fingerprints(home: Home, settings: Settings) -> dict[str, object]:
    files = {
        "settings": home.settings_file,
        "agents": settings.agents_config_path or home.agents_file,
        "users": home.users_file,
        "external": settings.external_mcps_path or home.config / "external-mcps.json",
    }
    found: dict[str, object] = {}
    for name, path in files.items():
        try:
            found[f"{name}_hash"] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            continue  # most homes have only some of these files
    return found


_SHOWN: Final = 5
_WINDOW_SECONDS: Final = 60.0
_MOST_KNOWN: Final = 10_000


class LoginAudit:
    """Records logins: one record per token and kind of client."""

    def __init__(self, audit: AuditTrail, clock: Callable[[], float] = time.monotonic) -> None:
        self._audit, self._clock = audit, clock
        self._known: set[tuple[str, str, str, str]] = set()
        self._refused = self._unsaid = 0
        self._since = -_WINDOW_SECONDS

    def accepted(self, identity: CallerIdentity, client: str) -> None:
        """Record a valid token of a person. Processes of the hub are recorded by `admitted`."""
        if identity.kind not in ("owner", "user"):
            return
        who = (identity.kind, identity.user_id, client[:40], identity.grant.name)
        if who not in self._known and len(self._known) < _MOST_KNOWN:
            self._known.add(who)
            named = dict(zip(("who", "user_id", "client", "token"), who, strict=True))
            self._audit.note("login", {"event": "accepted", **named})

    def refused(self, address: str, path: str) -> None:
        """Record a missing or wrong token: the first few per minute one by one, the rest as a number."""
        now = self._clock()
        if now >= self._since + _WINDOW_SECONDS:
            self.flush_refused()
            self._since, self._refused = now, 0
        self._refused += 1
        if self._refused > _SHOWN:
            self._unsaid += 1
        else:
            self._audit.note("login", {"event": "refused", "from": address, "path": path[:80]})

    def flush_refused(self) -> None:
        if self._unsaid:
            self._audit.note("login", {"event": "refused", "more": self._unsaid})
            self._unsaid = 0

    def admitted(self, identity: CallerIdentity) -> None:
        errand = identity.subagent_scope.turn_id if identity.subagent_scope is not None else None
        self._audit.note(
            "login", {"event": "admitted", "who": identity.kind, "agent_id": identity.agent_id, "errand": errand}
        )


def audit_server_changes(toolbox: Toolbox, audit: AuditTrail) -> None:
    """Record the toolbox's notices about servers, without their text."""

    def record_change(notice: ToolboxNotice) -> None:
        kind = "config" if notice.kind in ("servers_changed", "external_config") else "server"
        audit.note(kind, {"event": notice.kind, "server": notice.server})

    toolbox.on_notice(record_change)


def audit_user_changes(users: HomeUsers, audit: AuditTrail) -> None:
    def record_users(users: UserList) -> None:
        tokens = [f"{one.user_id}/{one.name}: {one.kind}, {' '.join(one.scopes)}" for one in users.tokens]
        names = [user.id for user in users.users]
        admins = [user.id for user in users.users if user.admin]
        audit.note("config", {"event": "changed", "what": "users", "users": names, "admins": admins, "tokens": tokens})

    users.subscribe(record_users)
