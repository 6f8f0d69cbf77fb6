"""From a tool's name to its server, through every door on the way. There is no other way (I-07)."""

from __future__ import annotations

from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.toolbox.catalogue import Catalogue, Offer
from annabelle.toolbox.doors import Doors
from annabelle.toolbox.guard.guard import Guard
from annabelle.toolbox.journal import CallJournal
from annabelle.toolbox.policy import AgentPolicy
from annabelle.toolbox.secrets.vaults import Vaults
from annabelle.toolbox.validation import ArgumentChecker
from annabelle.toolbox.wrappers.allowed import Allowed
from annabelle.toolbox.wrappers.approved import Approved
from annabelle.toolbox.wrappers.audited import Audited
from annabelle.toolbox.wrappers.checked import Checked
from annabelle.toolbox.wrappers.discreet import Masked, Unspoken
from annabelle.toolbox.wrappers.guarded import Guarded
from annabelle.toolbox.wrappers.labelled import Labelled
from annabelle.toolbox.wrappers.recorded import Recorded, Recorder
from annabelle.toolbox.wrappers.revealed import Revealed
from annabelle.toolbox.wrappers.timed import Timed


class Router:
    """Resolves a name and calls. The doors are put around the server anew for each call, whoever serves the tool.

    So a server that was restarted, reloaded or added a minute ago can not be reached without them. How a call ended is
    noted around them all (Audited). The order: may this caller (Allowed), do the arguments fit (Checked) and hold no
    secret (Unspoken), does policy or the person say yes (Approved), did it happen already (Recorded), does it try to
    give orders (Guarded), how long may it take (Timed), where does it come from (Labelled), values for handles of
    secrets (Revealed), and no other secret in what comes back (Masked). No clock runs while a person thinks or the
    guardian reads, and what is recorded is what was scanned, without a secret in it.
    """

    def __init__(self, catalogue: Catalogue, journal: CallJournal, doors: Doors, guard: Guard) -> None:
        self._catalogue, self._doors, self._guard = catalogue, doors, guard
        self._checker = ArgumentChecker()
        self._vaults = Vaults(catalogue)
        self.recorder = Recorder(journal)

    async def call(
        self, name: str, arguments: JsonObject, context: CallContext, policy: AgentPolicy | None
    ) -> ToolResult:
        offer = self._catalogue.find(name, policy, context.caller)
        return await self.way_to(offer, policy).call(offer.spec, arguments, context)

    def check(self, name: str, arguments: JsonObject, policy: AgentPolicy | None) -> None:
        """Raise what a call with these arguments would be refused with, without making it."""
        offer = self._catalogue.find(name, policy, "api" if policy is None else "agent")
        self._checker.check(offer.spec, arguments)

    def way_to(self, offer: Offer, policy: AgentPolicy | None) -> ToolClient:
        redact = self._doors.redact
        revealed = Revealed(Masked(offer.client, redact), offer.takes_secrets, self._vaults)
        labelled = Labelled(revealed, self._catalogue.reviewed(offer.spec), vouched=offer.vouched)
        timed = Timed(labelled, offer.timeout_seconds)
        guarded = Guarded(timed, self._guard, offer.scan)
        approved = Approved(Recorded(guarded, self.recorder), self._doors, self.recorder.begun)
        fitting = Checked(Unspoken(approved, redact), self._checker)
        return Audited(Allowed(fitting, policy), self._doors.audit)
