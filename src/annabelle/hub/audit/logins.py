"""Notes who came in and who was turned away; a flood of wrong tokens becomes a count, not a full disk."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from annabelle.core.ports import Audit
from annabelle.hub.security.identities import Identity

_SHOWN: Final = 5
_WINDOW_SECONDS: Final = 60.0
_MOST_KNOWN: Final = 10_000


class Logins:
    """What the door tells. Somebody known is noted with their first request by each kind of client."""

    def __init__(self, audit: Audit, clock: Callable[[], float] = time.monotonic) -> None:
        self._audit, self._clock = audit, clock
        self._known: set[tuple[str, str, str]] = set()
        self._refused = self._unsaid = 0
        self._since = -_WINDOW_SECONDS

    def accepted(self, identity: Identity, client: str) -> None:
        """A person's token was good. Programs of ours are noted when they are admitted."""
        if identity.kind not in ("owner", "user"):
            return
        who = (identity.kind, identity.user_id, client[:40])
        if who not in self._known and len(self._known) < _MOST_KNOWN:
            self._known.add(who)
            self._audit.note("login", {"event": "accepted", "who": who[0], "user_id": who[1], "client": who[2]})

    def refused(self, address: str, path: str) -> None:
        """A token was wrong or missing: the first few of a minute are noted one by one, the rest as a number."""
        now = self._clock()
        if now >= self._since + _WINDOW_SECONDS:
            self.tell_unsaid()
            self._since, self._refused = now, 0
        self._refused += 1
        if self._refused > _SHOWN:
            self._unsaid += 1
        else:
            self._audit.note("login", {"event": "refused", "from": address, "path": path[:80]})

    def tell_unsaid(self) -> None:
        """How many were refused and not noted one by one."""
        if self._unsaid:
            self._audit.note("login", {"event": "refused", "more": self._unsaid})
            self._unsaid = 0

    def admitted(self, identity: Identity) -> None:
        """A process of ours was given a secret of its own."""
        errand = identity.errand.turn_id if identity.errand is not None else None
        self._audit.note(
            "login", {"event": "admitted", "who": identity.kind, "agent_id": identity.agent_id, "errand": errand}
        )
