"""The owner's word on external servers: look at one, say yes, say no. No model has it, and no agent (I-09)."""

from __future__ import annotations

from annabelle.core.ports import Audit
from annabelle.toolbox.external.entries import External
from annabelle.toolbox.external.pinning import Account, Hold, Pinning
from annabelle.toolbox.external.reload import Apply, ExternalServers
from annabelle.toolbox.notices import Notice, NoticeListener


class Admission:
    """What is decided here takes effect at once, without a restart of the hub."""

    def __init__(self, pinning: Pinning, servers: ExternalServers, apply: Apply, audit: Audit | None) -> None:
        self._pinning, self._servers, self._apply, self._audit = pinning, servers, apply, audit

    def account(self, name: str) -> Account:
        """An external server as a person should see it before they say yes; NotFound for any other."""
        return self._pinning.account(self._servers.find(name))

    async def accept(self, name: str, digest: str | None = None) -> None:
        """Yes to what holds the server back; with `digest`, only if that is still what the person looked at."""

        def yes(server: External) -> bool:
            hold = self._pinning.accept(server, digest)
            if hold is not None:
                note(self._audit, name, "accepted", hold.digest)
            return hold is not None

        await self._servers.decide(name, yes, self._apply)

    async def reject(self, name: str) -> None:
        """No: the server stops, and does not start again before a yes."""

        def no(server: External) -> bool:
            self._pinning.reject(server)
            note(self._audit, name, "rejected", "")
            return True

        await self._servers.decide(name, no, self._apply)


def note(audit: Audit | None, server: str, what: str, digest: str) -> None:
    if audit is not None:
        audit.note("server", {"server": server, "what": what, "digest": digest})


class HoldTeller:
    """Tells people and the audit that a server is held back."""

    def __init__(self, notify: NoticeListener, audit: Audit | None) -> None:
        self._notify, self._audit = notify, audit

    def __call__(self, name: str, hold: Hold) -> None:
        note(self._audit, name, hold.state, hold.digest)
        self._notify(Notice("server_held", f"{name} is held back: {hold.sentence}", name))
