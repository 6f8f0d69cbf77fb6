"""Who a token belongs to: the owner, or one living thinker process."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass
from typing import Literal

from annabelle.core.errors import NotAllowed, Unauthorized
from annabelle.core.messages import OWNER

_AGENT_PATHS = ("/tools/", "/internal/")


@dataclass(frozen=True, slots=True)
class Identity:
    """An authenticated caller."""

    kind: Literal["owner", "agent"]
    user_id: str = OWNER
    agent_id: str | None = None


class Identities:
    """The tokens in force. A thinker's secret is made for one process and dies with it."""

    def __init__(self, owner_token: str) -> None:
        self._owner = (owner_token.encode(), Identity("owner"))
        self._agents: dict[bytes, Identity] = {}

    def admit(self, agent_id: str) -> str:
        """A fresh secret for a thinker process that is about to start."""
        secret = secrets.token_urlsafe(32)
        self._agents[secret.encode()] = Identity("agent", agent_id=agent_id)
        return secret

    def dismiss(self, secret: str) -> None:
        self._agents.pop(secret.encode(), None)

    def recognise(self, token: bytes) -> Identity:
        """Whose token this is. Every known token is compared, so the time taken tells nothing."""
        found: Identity | None = None
        for known, identity in (self._owner, *self._agents.items()):
            if hmac.compare_digest(known, token):
                found = identity
        if found is None:
            raise Unauthorized(
                "The token is missing or wrong.",
                hint="Send it as X-Annabelle-Token; it is in the file annabelle.token in the home.",
            )
        return found


def authorise(identity: Identity, path: str) -> None:
    """Thinkers reach tools and the ledger only; nobody else reaches what is internal."""
    if identity.kind == "agent" and not path.startswith(_AGENT_PATHS):
        raise NotAllowed("An agent may only use tools and the ledger.")
    if identity.kind != "agent" and path.startswith("/internal/"):
        raise NotAllowed("Only a running agent may use this address.")
