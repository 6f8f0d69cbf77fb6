"""Gives a tool the value where a call names the handle of a secret, and puts the handle back in what it answers.

Right around the server: journal, traces, sessions and whoever approves a call only ever see the handle (POL-06).
"""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.errors import AnnabelleError, NotAllowed
from annabelle.core.ports import ToolClient
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.secrets.handles import handles_in, with_values
from annabelle.toolbox.secrets.vaults import Vaults


@dataclass(frozen=True, slots=True)
class Revealed:
    """`takes_secrets` comes from the manifest of one of our own servers; everybody else is refused."""

    inner: ToolClient
    takes_secrets: bool
    vaults: Vaults

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        handles = {} if _housework(context) else handles_in(arguments)
        if handles and not self.takes_secrets:
            raise NotAllowed(
                f"{tool.name} does not take secrets.",
                hint="Handles of secrets are for tools that use them at once, as the browser's typing does.",
            )
        if handles:
            found = {handle: await self.vaults.secret(handle, vault, context) for handle, vault in handles.items()}
            self.vaults.tell(tool.server, {secret.value: handle for handle, secret in found.items()})
            arguments = with_values(arguments, {handle: secret.value for handle, secret in found.items()})
            sites = {secret.value: secret.sites for secret in found.values()}
            context = context.model_copy(update={"secrets": tuple(sites), "secret_sites": sites})
        scrubber = self.vaults.scrubber(tool.server)
        if scrubber is None:
            return await self.inner.call(tool, arguments, context)
        try:
            return scrubber.result(await self.inner.call(tool, arguments, context))
        except AnnabelleError as error:
            raise scrubber.error(error) from None


def _housework(context: CallContext) -> bool:
    """Conversations are kept, and looked through before a turn, by calls that no model chose: a handle in what was said
    is just a word there. A model's own calls always have an id."""
    return context.caller == "hub" or (context.caller == "agent" and context.call_id is None)
