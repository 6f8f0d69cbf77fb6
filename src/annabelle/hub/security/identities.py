"""Tokens and whom they identify: the owner, other users, agents and servers."""

from __future__ import annotations

import asyncio
import contextlib
import hmac
import re
import secrets
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from annabelle.core.background import BackgroundTasks
from annabelle.core.config_file import ConfigFile
from annabelle.core.errors import ConfigMistake, NotAllowed, OperatorMistake, Unauthorized, explain_os_error
from annabelle.core.home import Home, write_atomically
from annabelle.core.messages import OWNER, now
from annabelle.core.settings import Settings
from annabelle.core.tools import ToolSpec
from annabelle.hub.notices import Notices
from annabelle.hub.security.users_file import MAIN, SCOPES, CallerKind, Scope, UserList, hash_token, read_users
from annabelle.toolbox.catalogue import NATIVE, AgentPolicy

_AGENT_PATHS = ("/tools/", "/internal/")
_SERVER_PATHS = ("/internal/ledger/reserve", "/internal/ledger/settle")
# Resources that return only the caller's own rows. All other paths are for the owner.
_PEOPLES_PATHS = (
    *("/messages/", "/threads/", "/notes/", "/tools/", "/approvals/", "/rules/", "/tokens/", "/v1/"),
    *("/goals/", "/tasks/", "/feed/"),
)
_PEOPLES_PLACES = frozenset(
    {
        "/message",
        "/commands",
        "/threads",
        "/notes",
        "/links",
        "/approvals",
        "/rules",
        "/events",
        "/tokens",
        "/memory/tidy",
        "/memory/learn",
        "/mcp",
        "/goals",
        "/tasks",
        "/feed",
        "/user-agent",
        "/sessions/links",
        "/sessions/current",
        "/sessions/current/end",
    }
)
_PLAIN_PATH = "/openapi.json"
# The scope that a path needs, by its first part. All other paths need `manage`.
_SCOPES_OF_PATHS: Final[dict[str, Scope]] = {
    "message": "talk",
    "commands": "talk",
    "messages": "talk",
    "threads": "threads",
    "notes": "threads",
    "links": "threads",
    "events": "threads",
    "tools": "tools",
    "approvals": "approve",
    "rules": "approve",
    "tokens": "tokens",
    "v1": "talk",
    "mcp": "tools",
    "sessions": "talk",
    "files": "talk",
}


AGENT_CHANNEL: Final = "agent:"
"""Begins the channel of another agent, which speaks with a token of a person."""


@dataclass(frozen=True, slots=True)
class SubagentScope:
    """Limits of a subagent: its turn, the message that turn works for, and the tools it may use."""

    turn_id: str
    message_id: str
    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """What a token allows, and in whose hands it is. Without a hash: of the hub's processes, or the owner's first."""

    name: str = MAIN
    kind: CallerKind = "person"
    scopes: frozenset[Scope] = SCOPES
    hash: str = ""
    ends_at: datetime | None = None


_FULL_GRANT: Final = TokenGrant()


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """An authenticated caller. A subagent has the id of its parent agent, and a scope.

    `kind` is whose token it is; the grant says who speaks with it: a person's token may be in the hands of an agent.
    """

    kind: Literal["owner", "user", "agent", "server"]
    user_id: str = OWNER
    agent_id: str | None = None
    subagent_scope: SubagentScope | None = None
    grant: TokenGrant = _FULL_GRANT

    @property
    def outside_agent(self) -> str | None:
        """Name of the agent that calls with a person's token. It is not the person, and has a channel of its own."""
        return f"{AGENT_CHANNEL}{self.grant.name}" if self.grant.kind == "agent" else None

    def as_outside_agent(self, name: str) -> CallerIdentity:
        """The same person's token in the hands of a program that decides for itself, called `name` unless the token
        has a name of its own."""
        if self.outside_agent is not None:
            return self
        named = name if self.grant.name == MAIN else self.grant.name
        return replace(self, grant=replace(self.grant, kind="agent", name=named))


class Identities:
    """The valid tokens. A thinker's secret belongs to one process and is revoked with it."""

    def __init__(
        self,
        owner_token: str,
        *,
        users: HomeUsers | None = None,
        on_revoked: Callable[[str], None] | None = None,
        on_admitted: Callable[[CallerIdentity], None] | None = None,
    ) -> None:
        """`on_revoked` gets the hash of a revoked token, `on_admitted` every process that gets a secret."""
        self._owner = (owner_token.encode(), CallerIdentity("owner"))
        self._agents: dict[bytes, CallerIdentity] = {}
        self._people: dict[str, CallerIdentity] = {}
        self._users, self._on_revoked, self._on_admitted = users, on_revoked, on_admitted
        if users is not None:
            users.subscribe(self.set_users)

    def set_users(self, users: UserList) -> None:
        """Replace the tokens in the file, and report revoked or changed ones so that their streams end."""
        before = self._people
        known = [CallerIdentity("user", user.id, grant=TokenGrant(hash=user.token_sha256)) for user in users.users]
        known += [
            CallerIdentity(
                "owner" if one.user_id == OWNER else "user",
                one.user_id,
                grant=TokenGrant(one.name, one.kind, frozenset(one.scopes), one.token_sha256, one.ends_at),
            )
            for one in users.tokens
        ]
        self._people = {identity.grant.hash: identity for identity in known}
        for identity in before.values():
            if self.is_revoked(identity) and self._on_revoked is not None:
                self._on_revoked(identity.grant.hash)

    def is_revoked(self, identity: CallerIdentity) -> bool:
        """Whether a caller that was known when its request began is so no longer."""
        return bool(identity.grant.hash) and self._people.get(identity.grant.hash) != identity

    def admit(self, agent_id: str, errand: SubagentScope | None = None) -> str:
        secret = secrets.token_urlsafe(32)
        identity = self._agents[secret.encode()] = CallerIdentity("agent", agent_id=agent_id, subagent_scope=errand)
        if self._on_admitted is not None:
            self._on_admitted(identity)
        return secret

    def admit_servers(self) -> str:
        """A new secret for servers. It gives access to the ledger only."""
        secret = secrets.token_urlsafe(32)
        self._agents[secret.encode()] = CallerIdentity("server")
        return secret

    def revoke(self, secret: str) -> None:
        self._agents.pop(secret.encode(), None)

    def identify(self, token: bytes) -> CallerIdentity:
        """Identity of a token. Compares every known token, so timing reveals nothing."""
        found = self._find(token)
        if found is None and token and self._users is not None and self._users.reload_if_changed():
            found = self._find(token)
        if found is None or (found.grant.ends_at is not None and found.grant.ends_at <= now()):
            raise Unauthorized(
                "The token is missing or wrong.",
                hint="Send it as X-Annabelle-Token; it is in the file annabelle.token in the home.",
            )
        if self._users is not None and found.kind in ("owner", "user"):
            self._users.note_use(found)
        return found

    def _find(self, token: bytes) -> CallerIdentity | None:
        found: CallerIdentity | None = None
        for known, identity in (self._owner, *self._agents.items()):
            if hmac.compare_digest(known, token):
                found = identity
        digest = hash_token(token) if self._people else ""
        for known, identity in self._people.items():
            if hmac.compare_digest(known, digest):
                found = found or identity
        return found


def authorize_path(identity: CallerIdentity, path: str) -> None:
    if identity.kind == "agent" and not path.startswith(_AGENT_PATHS):
        raise NotAllowed("An agent may only use tools and the ledger.")
    if identity.kind == "server":
        if not path.startswith(_SERVER_PATHS):
            raise NotAllowed("A server may only book what it spends.")
    elif identity.kind != "agent" and path.startswith("/internal/"):
        raise NotAllowed("Only a running agent may use this address.")
    if identity.kind in ("agent", "server") or path == _PLAIN_PATH:
        return
    if identity.kind == "user" and path not in _PEOPLES_PLACES and not path.startswith(_PEOPLES_PATHS):
        raise NotAllowed("Only the owner of this home may use this address.")
    needed = _SCOPES_OF_PATHS.get(path.lstrip("/").partition("/")[0], "manage")
    if needed not in identity.grant.scopes:
        raise NotAllowed(
            f"The token {identity.grant.name} has no scope {needed}.", hint="annabelle tokens shows what each may do."
        )


_GOOD = re.compile(r"[!-~]{16,512}")


def owner_token(home: Home, settings: Settings, notices: Notices) -> str:
    """The owner's token. Repairs a missing, damaged or exposed file and says so."""
    if settings.annabelle_token is not None:
        configured = settings.annabelle_token.get_secret_value()
        if not _GOOD.fullmatch(configured):
            raise ConfigMistake(
                "ANNABELLE_TOKEN is not valid: it must be 16 to 512 visible ASCII characters.",
                hint="Set a longer one, or remove it and Annabelle makes its own.",
                field="ANNABELLE_TOKEN",
            )
        return configured
    return _read_token_file(home.token_file, notices)


def _read_token_file(path: Path, notices: Notices) -> str:
    try:
        token = path.read_bytes().strip().decode("ascii", errors="replace")
        exposed = stat.S_IMODE(path.stat().st_mode) & 0o077
    except FileNotFoundError:
        return _create_token_file(path)
    except OSError as error:
        raise OperatorMistake(
            f"The token file {path} can not be read: {error.strerror}.",
            hint="Remove it or fix its permissions; a new token is made when it is missing.",
        ) from error
    if not _GOOD.fullmatch(token):
        text = "The token file was damaged or empty; a new token was made, so clients must read it again."
        notices.add("token", text, level="warning")
        return _create_token_file(path)
    if exposed:
        notices.add("token", "The token file was readable by others; its mode is 0600 again.", level="warning")
        what = f"The token file {path} is readable by others and its mode can not be changed"
        with explain_os_error(OperatorMistake, what, hint=f"Run chmod 600 {path} as its owner."):
            path.chmod(0o600)
    return token


def _create_token_file(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    hint = "Free space or fix the permissions of the home."
    with explain_os_error(OperatorMistake, f"The token file {path} can not be written", hint=hint):
        write_atomically(path, token + "\n", mode=0o600)
    return token


LOOK_SECONDS: Final = 1.0
_USES: Final = TypeAdapter(dict[str, datetime])
TOPIC: Final = "users_config"
MEMORY: Final = "memory"
# These access files that may hold other users' memory.
_OWNERS: Final = frozenset({"memory_import_memory", "memory_list_backups", "memory_restore_backup"})
_IN_TURNS: Final = frozenset(
    {
        "send_message",
        "send_telegram",
        "get_tool_catalog",
        "search_tools",
        "store_fact",
        "search_memories",
        "create_goal",
    }
)


class HomeUsers:
    """Reads users.json at start and when it changes. An invalid edit keeps the last valid version."""

    def __init__(self, path: Path, uses: Path, notices: Notices) -> None:
        """`uses` is the file of when each token was used last."""
        self._file, self._uses_file, self._notices = ConfigFile(path), uses, notices
        self._uses = self._saved_uses = _read_uses(uses)
        self._subscribers: list[Callable[[UserList], None]] = []
        self._users = UserList()
        self._watching = BackgroundTasks()
        self._loaded = self.reload_if_changed()

    def subscribe(self, subscriber: Callable[[UserList], None]) -> None:
        """Call `subscriber` with the users now, if loaded, and on every change."""
        self._subscribers.append(subscriber)
        if self._loaded:
            subscriber(self._users)

    def reload_if_changed(self) -> bool:
        """Returns whether the file had changed."""
        if not self._file.has_changed():
            return False
        try:
            self._users = read_users(self._file.path)
        except ConfigMistake as mistake:
            self._notices.add(TOPIC, f"{mistake.message} The last good one stays in force.", level="error")
            return False
        self._notices.clear(TOPIC)
        self._loaded = True
        for subscriber in self._subscribers:
            subscriber(self._users)
        return True

    async def start(self) -> None:
        self._watching.start(self._watch())

    async def stop(self) -> None:
        await self._watching.stop()
        await self._save_uses()

    @property
    def users(self) -> UserList:
        return self._users

    def is_known(self, user_id: str) -> bool:
        """Whether this is the owner or one of the users, as the file says now."""
        if user_id == OWNER:
            return True
        self.reload_if_changed()
        return self._users.get(user_id) is not None

    def note_use(self, caller: CallerIdentity) -> None:
        # To the minute, so that the file is written at most once in it.
        self._uses = self._uses | {caller.grant.hash or OWNER: now().replace(second=0, microsecond=0)}

    def last_use(self, token_hash: str) -> datetime | None:
        return self._uses.get(token_hash or OWNER)

    async def _save_uses(self) -> None:
        if self._uses != self._saved_uses:
            self._saved_uses = self._uses
            with contextlib.suppress(OSError):  # nothing depends on it
                await asyncio.to_thread(write_atomically, self._uses_file, _USES.dump_json(self._uses).decode())

    def policy(self, user_id: str, tools: tuple[ToolSpec, ...], *, in_turn: bool) -> AgentPolicy:
        """What a user may call, as exact tool names. `in_turn`: what an agent may call for them."""
        user = self._users.get(user_id)
        more = AgentPolicy(allowed=user.allowed_tools if user is not None else ())
        names = [spec.name for spec in tools if _is_theirs(spec, in_turn) or more.permits(spec.name)]
        return AgentPolicy(allowed=tuple(names))

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.reload_if_changed()
            await self._save_uses()


def _read_uses(path: Path) -> dict[str, datetime]:
    try:
        return _USES.validate_json(path.read_bytes())
    except (OSError, ValidationError):
        return {}


def _is_theirs(spec: ToolSpec, in_turn: bool) -> bool:
    if spec.name in _OWNERS:
        return False
    if spec.server == MEMORY:
        return True
    return spec.server == NATIVE and (spec.name.startswith("memory_") or (in_turn and spec.name in _IN_TURNS))
