"""From a tool's name to its server, through every door on the way. There is no other way (I-07)."""

from __future__ import annotations

from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.toolbox.catalogue import Catalogue, Offer
from annabelle.toolbox.journal import CallJournal
from annabelle.toolbox.policy import AgentPolicy
from annabelle.toolbox.secrets.vaults import Vaults
from annabelle.toolbox.validation import ArgumentChecker
from annabelle.toolbox.wrappers.allowed import Allowed
from annabelle.toolbox.wrappers.checked import Checked
from annabelle.toolbox.wrappers.recorded import Recorded, Recorder
from annabelle.toolbox.wrappers.revealed import Revealed
from annabelle.toolbox.wrappers.timed import Timed


class Router:
    """Resolves a name and calls. The doors are put around the server anew for each call, whoever serves the tool.

    So a server that was restarted, reloaded or added a minute ago can not be reached without them. The order:
    may this caller (Allowed), do the arguments fit (Checked), did it happen already (Recorded), how long may it take
    (Timed), values for handles of secrets (Revealed). Approved belongs between Checked and Recorded, because no clock
    runs while a person thinks; Guarded belongs right around Revealed, so that what is recorded is what was scanned, and
    neither holds a secret.
    """

    def __init__(self, catalogue: Catalogue, journal: CallJournal) -> None:
        self._catalogue = catalogue
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
        return Allowed(Checked(Recorded(timed, self.recorder), self._checker), policy)
