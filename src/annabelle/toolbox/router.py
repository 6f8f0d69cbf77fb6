"""From a tool's name to its server, through every check on the way. There is no other way (I-07)."""

from __future__ import annotations

from copy import copy

from annabelle.core.errors import NotAllowed
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
    """Resolves a name and calls through a chain that is built for each call, whoever serves the tool.

    So a server that was restarted, reloaded or added a minute ago cannot be reached without it. `build_chain` is the
    order. What is not allowed is refused before its arguments are checked. No clock runs while a person thinks or the
    guardian reads. What is recorded is what was scanned, without a secret in it.
    """

    def __init__(self, catalogue: ToolCatalogue, journal: CallJournal, hooks: CallHooks, guard: ContentGuard) -> None:
        self._catalogue, self._hooks, self._guard = catalogue, hooks, guard
        self._checker = ArgumentChecker()
        self._vaults = SecretVaults(catalogue)
        self.recorder = CallRecorder(journal)

    def with_hooks(self, hooks: CallHooks) -> ToolRouter:
        """This router with other hooks. Both share the calls under way and what was checked."""
        router = copy(self)
        router._hooks = hooks
        return router

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


class HubCalls:
    """The hub's own calls. No judge is asked about them, so nobody else may make them."""

    def __init__(self, router: ToolRouter) -> None:
        self._router = router

    async def call(self, name: str, arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.caller != "hub":
            raise NotAllowed("Only the hub itself makes calls that no judge is asked about.")
        return await self._router.call(name, arguments, context, None)
