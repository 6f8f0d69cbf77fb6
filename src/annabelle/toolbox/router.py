"""From a tool's name to its server, through every door on the way. There is no other way (I-07)."""

from __future__ import annotations

from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult
from annabelle.toolbox.call_hooks import CallHooks, CallJournal
from annabelle.toolbox.catalogue import AgentPolicy, ToolCatalogue, ToolOffer
from annabelle.toolbox.guard import ContentGuard
from annabelle.toolbox.middleware.access import RequireApproval, RequirePermission
from annabelle.toolbox.middleware.argument_check import ArgumentChecker, CheckArguments
from annabelle.toolbox.middleware.content import LabelResult, ScanContent
from annabelle.toolbox.middleware.record import AuditCall, CallRecorder, RecordCall
from annabelle.toolbox.middleware.secrets import RedactOutput, RejectSecrets, ResolveSecrets, SecretVaults
from annabelle.toolbox.middleware.timeout import LimitTime


class ToolRouter:
    """Resolves a name and calls. The doors are put around the server anew for each call, whoever serves the tool.

    So a server that was restarted, reloaded or added a minute ago can not be reached without them. How a call ended is
    noted around them all (Audited). The order: may this caller (Allowed), do the arguments fit (Checked) and hold no
    secret (Unspoken), does policy or the person say yes (Approved), did it happen already (Recorded), does it try to
    give orders (Guarded), how long may it take (Timed), where does it come from (Labelled), values for handles of
    secrets (Revealed), and no other secret in what comes back (Masked). No clock runs while a person thinks or the
    guardian reads, and what is recorded is what was scanned, without a secret in it.
    """

    def __init__(self, catalogue: ToolCatalogue, journal: CallJournal, doors: CallHooks, guard: ContentGuard) -> None:
        self._catalogue, self._hooks, self._guard = catalogue, doors, guard
        self._checker = ArgumentChecker()
        self._vaults = SecretVaults(catalogue)
        self.recorder = CallRecorder(journal)

    async def call(
        self, name: str, arguments: JsonObject, context: CallContext, policy: AgentPolicy | None
    ) -> ToolResult:
        offer = self._catalogue.find(name, policy, context.caller)
        return await self.build_chain(offer, policy).call(offer.spec, arguments, context)

    def check(self, name: str, arguments: JsonObject, policy: AgentPolicy | None) -> None:
        """Raise what a call with these arguments would be refused with, without making it."""
        offer = self._catalogue.find(name, policy, "api" if policy is None else "agent")
        self._checker.check(offer.spec, arguments)

    def build_chain(self, offer: ToolOffer, policy: AgentPolicy | None) -> ToolClient:
        redact = self._hooks.redact
        revealed = ResolveSecrets(RedactOutput(offer.client, redact), offer.takes_secrets, self._vaults)
        labelled = LabelResult(revealed, self._catalogue.reviewed_traits(offer.spec), vouched=offer.vouched)
        timed = LimitTime(labelled, offer.timeout_seconds)
        guarded = ScanContent(timed, self._guard, offer.scan)
        approved = RequireApproval(RecordCall(guarded, self.recorder), self._hooks, self.recorder.was_started)
        fitting = CheckArguments(RejectSecrets(approved, redact), self._checker)
        return AuditCall(RequirePermission(fitting, policy), self._hooks.audit)
