"""Keeps the secrets of this home out of what agents call with, and out of what servers give back (POL-06, I-30).

Those of the vault are handles (revealed.py). These are the others: what environment, settings, connected accounts and
external servers' entries hold. A model has no use for one, and what a model sees is written down in many places.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from annabelle.core.errors import AnnabelleError, NotAllowed
from annabelle.core.masked_forms import texts_in
from annabelle.core.ports import ToolClient
from annabelle.core.redact import MASK, Forms, Redactor
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec

E = TypeVar("E", bound=AnnabelleError)


@dataclass(frozen=True, slots=True)
class Unspoken:
    """Refuses calls of agents that carry a secret, before anybody is asked about them or writes them down.

    They can not be asked about: the question would show a mask, and who approves has to see the exact call. People may
    call tools with what they like. A mask is refused where something is done: it would be written over what it hides.
    """

    inner: ToolClient
    redact: Redactor

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.caller == "agent" and context.call_id is not None:
            if self.redact.known.within(arguments):
                raise NotAllowed(
                    f"{tool.name} was not called: the arguments hold a secret of this home.",
                    hint="Secrets go to tools as handles only; tell the user to enter it themselves.",
                )
            if not tool.annotations.read_only and any(MASK in text for text in texts_in(arguments)):
                raise NotAllowed(
                    f"{tool.name} was not called: {MASK} stands for a secret that is not shown.",
                    hint="Leave that part out, or ask the user to do it themselves.",
                )
        return await self.inner.call(tool, arguments, context)


@dataclass(frozen=True, slots=True)
class Masked:
    """Right around the server: what comes back is scanned, recorded and shown without the secret."""

    inner: ToolClient
    redact: Redactor

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        known = self.redact.known
        if tool.audience == "hub":  # between the hub and its own servers: the vault gives values here
            return await self.inner.call(tool, arguments, context)
        try:
            result = await self.inner.call(tool, arguments, context)
        except AnnabelleError as error:
            written = self.redact.written
            if not written.within([error.message, error.hint, error.field]):
                raise
            raise _unsaid(error, written) from None
        error = result.error
        known = self.redact.written if result.is_error else known
        if not known.within((result.text, result.structured, None if error is None else error.model_dump())):
            return result
        if error is not None:
            error = error.model_copy(
                update={"message": known.masked(error.message), "hint": _maybe(known, error.hint), "field": None}
            )
        structured = None if result.structured is None else known.masked_object(result.structured)
        return result.model_copy(update={"text": known.masked(result.text), "structured": structured, "error": error})


def _maybe(known: Forms, text: str | None) -> str | None:
    return None if text is None else known.masked(text)


def _unsaid(error: E, known: Forms) -> E:
    """The same error in words without secrets; what led to it is cut off, for a log shows that too."""
    error.message, error.hint = known.masked(error.message), _maybe(known, error.hint)
    error.field = _maybe(known, error.field)
    error.args = (error.message,)
    error.__cause__, error.__suppress_context__ = None, True
    return error
