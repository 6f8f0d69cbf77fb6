"""Who a token belongs to: the owner, another person, or one living thinker process."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from annabelle.core.errors import NotAllowed, Unauthorized
from annabelle.core.messages import OWNER
from annabelle.hub.security.users_file import Users, hashed

_AGENT_PATHS = ("/tools/", "/internal/")
_SERVER_PATHS = ("/internal/ledger/reserve", "/internal/ledger/settle")
# Everything behind these asks for the caller's own rows; whatever is added elsewhere is the owner's until it is named.
_PEOPLES_PATHS = ("/messages/", "/threads/", "/tools/", "/approvals/", "/rules/")
_PEOPLES_PLACES = frozenset(
    {"/message", "/threads", "/approvals", "/rules", "/events", "/memory/tidy", "/memory/learn", "/openapi.json"}
)


@dataclass(frozen=True, slots=True)
class Errand:
    """What a subagent was sent for: its one turn, the message that turn is for, and what it may use at most."""

    turn_id: str
    message_id: str
    allowed: tuple[str, ...] | None = None
    denied: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller. A subagent has the id of the agent it works for, and an errand."""

    kind: Literal["owner", "user", "agent", "server"]
    user_id: str = OWNER
    agent_id: str | None = None
    errand: Errand | None = None


class Identities:
    """The tokens in force. A thinker's secret is made for one process and dies with it."""

    def __init__(self, owner_token: str) -> None:
        self._owner = (owner_token.encode(), Identity("owner"))
        self._agents: dict[bytes, Identity] = {}
        self._people: dict[bytes, Identity] = {}
        self.on_stranger: Callable[[], bool] = lambda: False
        """Asked about an unknown token: whether the people known may have changed meanwhile."""
        self.on_revoked: Callable[[str], None] = lambda user_id: None
        """Told whose token is no longer valid."""
        self.on_admitted: Callable[[Identity], None] = lambda _identity: None
        """Told of every process that gets a secret."""

    def know(self, users: Users) -> None:
        """The people beside the owner, from now on. Whose token is gone is told of, so that their streams end."""
        before = self._people
        self._people = {user.token_sha256.encode(): Identity("user", user.id) for user in users.users}
        for token in before.keys() - self._people.keys():
            self.on_revoked(before[token].user_id)

    def admit(self, agent_id: str, errand: Errand | None = None) -> str:
        """A fresh secret for a thinker process that is about to start."""
        secret = secrets.token_urlsafe(32)
        identity = self._agents[secret.encode()] = Identity("agent", agent_id=agent_id, errand=errand)
        self.on_admitted(identity)
        return secret

    def admit_servers(self) -> str:
        """A fresh secret for servers that book what they spend; it opens the ledger and nothing else."""
        secret = secrets.token_urlsafe(32)
        self._agents[secret.encode()] = Identity("server")
        return secret

    def dismiss(self, secret: str) -> None:
        self._agents.pop(secret.encode(), None)

    def recognise(self, token: bytes) -> Identity:
        """Whose token this is. Every known token is compared, so the time taken tells nothing."""
        found = self._find(token)
        if found is None and token and self.on_stranger():
            found = self._find(token)
        if found is None:
            raise Unauthorized(
                "The token is missing or wrong.",
                hint="Send it as X-Annabelle-Token; it is in the file annabelle.token in the home.",
            )
        return found

    def _find(self, token: bytes) -> Identity | None:
        found: Identity | None = None
        for known, identity in (self._owner, *self._agents.items()):
            if hmac.compare_digest(known, token):
                found = identity
        digest = hashed(token).encode() if self._people else b""
        for known, identity in self._people.items():
            if hmac.compare_digest(known, digest):
                found = found or identity
        return found


def authorise(identity: Identity, path: str) -> None:
    """Thinkers reach tools and the ledger, people beside the owner what is theirs, and nobody else what is internal."""
    if identity.kind == "agent" and not path.startswith(_AGENT_PATHS):
        raise NotAllowed("An agent may only use tools and the ledger.")
    if identity.kind == "server":
        if not path.startswith(_SERVER_PATHS):
            raise NotAllowed("A server may only book what it spends.")
    elif identity.kind != "agent" and path.startswith("/internal/"):
        raise NotAllowed("Only a running agent may use this address.")
    if identity.kind == "user" and path not in _PEOPLES_PLACES and not path.startswith(_PEOPLES_PATHS):
        raise NotAllowed("Only the owner of this home may use this address.")
