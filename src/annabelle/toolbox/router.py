"""From a tool's name to its server, through every door on the way. There is no other way (I-07)."""

from __future__ import annotations

from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.toolbox.catalogue import Catalogue, Offer
from annabelle.toolbox.doors import Doors
from annabelle.toolbox.journal import CallJournal
from annabelle.toolbox.policy import AgentPolicy
from annabelle.toolbox.secrets.vaults import Vaults
from annabelle.toolbox.validation import ArgumentChecker
from annabelle.toolbox.wrappers.allowed import Allowed
from annabelle.toolbox.wrappers.approved import Approved
from annabelle.toolbox.wrappers.checked import Checked
from annabelle.toolbox.wrappers.recorded import Recorded, Recorder
from annabelle.toolbox.wrappers.revealed import Revealed
from annabelle.toolbox.wrappers.timed import Timed


class Router:
    """Resolves a name and calls. The doors are put around the server anew for each call, whoever serves the tool.

    So a server that was restarted, reloaded or added a minute ago can not be reached without them. The order:
    may this caller (Allowed), do the arguments fit (Checked), does policy or the person say yes (Approved), did it
    happen already (Recorded), how long may it take (Timed), values for handles of secrets (Revealed). No clock runs
    while a person thinks, and what is recorded is what was scanned, without a secret in it.
    """

    def __init__(self, catalogue: Catalogue, journal: CallJournal, doors: Doors) -> None:
        self._catalogue, self._doors = catalogue, doors
        self._checker = ArgumentChecker()
        self._vaults = Vaults(catalogue)
        self.recorder = Recorder(journal)

    async def call(
        self, name: str, arguments: JsonObject, context: CallContext, policy: AgentPolicy | None
    ) -> ToolResult:
        offer = self._catalogue.find(name, policy, context.caller)
        return await self.way_to(offer, policy).call(offer.spec, arguments, context)

    def way_to(self, offer: Offer, policy: AgentPolicy | None) -> ToolClient:
        revealed = Revealed(offer.client, offer.takes_secrets, self._vaults)
        timed = Timed(revealed, offer.timeout_seconds)
        approved = Approved(Recorded(timed, self.recorder), self._doors)
        return Allowed(Checked(approved, self._checker), policy)
