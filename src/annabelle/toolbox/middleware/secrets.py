"""Keeps secrets away from models: rejects them in arguments, resolves handles, and redacts results (POL-06, I-30)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from annabelle.core.errors import AnnabelleError, NotAllowed, RetryByModel, Unavailable, UnknownTool
from annabelle.core.ports import ToolClient
from annabelle.core.secrets.encodings import encodings_of
from annabelle.core.secrets.matcher import iterate_texts, map_texts
from annabelle.core.secrets.redactor import MASK, Redactor, SecretMatcher
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.catalogue import ToolCatalogue

E = TypeVar("E", bound=AnnabelleError)


class SecretScrubber:
    """Knows values and their handles; what is as it is, escaped, encoded or only a line of it is found."""

    def __init__(self, handles_by_value: Mapping[str, str]) -> None:
        self._handles: dict[str, str] = {}
        for value, handle in handles_by_value.items():
            for shape in encodings_of(value):
                self._handles.setdefault(shape, handle)
        longest_first = sorted(self._handles, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def scrub_text(self, text: str) -> str:
        return self._pattern.sub(lambda match: self._handles[match[0]], text) if self._handles else text

    def scrub_result(self, result: ToolResult) -> ToolResult:
        error = result.error
        if error is not None:
            error = error.model_copy(
                update={
                    "message": self.scrub_text(error.message),
                    "hint": self._scrub_optional(error.hint),
                    "field": self._scrub_optional(error.field),
                }
            )
        structured = cast("JsonObject | None", map_texts(result.structured, self.scrub_text))
        return result.model_copy(
            update={"text": self.scrub_text(result.text), "structured": structured, "error": error}
        )

    def scrub_error(self, error: E) -> E:
        """The same error in words without secrets; what led to it is cut off, for a log shows that too."""
        error.message, error.hint, error.field = (
            self.scrub_text(error.message),
            self._scrub_optional(error.hint),
            self._scrub_optional(error.field),
        )
        error.args = (error.message,)
        error.__cause__, error.__suppress_context__ = None, True
        return error

    def _scrub_optional(self, text: str | None) -> str | None:
        return None if text is None else self.scrub_text(text)


_REVEAL = "reveal"
_MOST = 200
_UNMISTAKABLE = 8
"""Characters from which on a value is looked for in the answers of every server."""


@dataclass(frozen=True, slots=True)
class VaultSecret:
    """A value, and the web addresses of the item it is of; none where it is bound to no site."""

    value: str = field(repr=False)
    sites: tuple[str, ...] = ()


class SecretVaults:
    """Asks the server a handle came from, in the name of the one who calls; it knows to whom it gave the handle.

    A value that was told stays known here, in memory: a form that was filled in shows it in the next snapshot, a page
    that was saved in a file, and then the handle must stand there too. A short one, a PIN perhaps, is only looked for
    where it was told: elsewhere it would be found in every number.
    """

    def __init__(self, catalogue: ToolCatalogue) -> None:
        self._catalogue = catalogue
        self._known_values: dict[tuple[str | None, str], str] = {}
        self._scrubbers: dict[str, SecretScrubber | None] = {}

    async def secret(self, handle: str, vault: str, context: CallContext) -> VaultSecret:
        """What the handle stands for, for this caller."""
        try:
            offer = self._catalogue.find(f"{vault}_{_REVEAL}", None, "hub")
        except UnknownTool:
            offer = None
        # Only our own servers can keep a tool for the hub, so no external one is ever asked.
        if offer is None or offer.spec.audience != "hub":
            raise RetryByModel("There is no vault this handle could come from.", hint="Read the secret again.")
        asking = context.model_copy(update={"caller": "hub", "call_id": None, "provenance": None})
        answer = await offer.client.call(offer.spec, {"handle": handle}, asking)
        told = answer.structured or {}
        value, sites = told.get("value"), told.get("sites")
        if answer.error is not None:
            kind = RetryByModel if answer.error.code == RetryByModel.code else Unavailable
            raise kind(answer.error.message, hint=answer.error.hint)
        if answer.is_error or not isinstance(value, str) or not value:
            raise Unavailable("The value of the secret could not be had.", hint="Read the secret again.")
        listed = cast("list[object]", sites) if isinstance(sites, list) else []
        return VaultSecret(value, tuple(str(site) for site in listed))

    def remember_values(self, server: str, handles_by_value: dict[str, str]) -> None:
        """From now on this server knows these values."""
        for value, handle in handles_by_value.items():
            place = None if len(value) >= _UNMISTAKABLE else server
            self._known_values.pop((place, value), None)
            self._known_values[place, value] = handle
        while len(self._known_values) > _MOST:
            del self._known_values[next(iter(self._known_values))]
        self._scrubbers.clear()

    def scrubber_for(self, server: str) -> SecretScrubber | None:
        """For what this server gives back; None when there is nothing it could repeat."""
        if server not in self._scrubbers:
            values = {value: handle for (place, value), handle in self._known_values.items() if place in (None, server)}
            self._scrubbers[server] = SecretScrubber(values) if values else None
        return self._scrubbers[server]


_SCHEME = "secret://"
_HANDLE = re.compile(r"secret://([a-z0-9][a-z0-9_-]{0,39})/[a-z0-9]{16,64}")


def find_handles(arguments: JsonObject) -> dict[str, str]:
    """Every handle that is named, with the server it came from."""
    found: dict[str, str] = {}

    def collect_handles(text: str) -> str:
        if _SCHEME in text:
            found.update((match[0], match[1]) for match in _HANDLE.finditer(text))
        return text

    map_texts(arguments, collect_handles)
    return found


def insert_values(arguments: JsonObject, values: Mapping[str, str]) -> JsonObject:
    """The same arguments with values in place of handles."""

    def replace_handles(text: str) -> str:
        return _HANDLE.sub(lambda match: values.get(match[0], match[0]), text) if _SCHEME in text else text

    return cast("JsonObject", map_texts(arguments, replace_handles))


@dataclass(frozen=True, slots=True)
class ResolveSecrets:
    """`takes_secrets` comes from the manifest of one of our own servers; everybody else is refused."""

    inner: ToolClient
    takes_secrets: bool
    vaults: SecretVaults

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        handles = {} if _is_internal_call(context) else find_handles(arguments)
        if handles and not self.takes_secrets:
            raise NotAllowed(
                f"{tool.name} does not take secrets.",
                hint="Handles of secrets are for tools that use them at once, as the browser's typing does.",
            )
        if handles:
            found = {handle: await self.vaults.secret(handle, vault, context) for handle, vault in handles.items()}
            self.vaults.remember_values(tool.server, {secret.value: handle for handle, secret in found.items()})
            arguments = insert_values(arguments, {handle: secret.value for handle, secret in found.items()})
            sites = {secret.value: secret.sites for secret in found.values()}
            context = context.model_copy(update={"secrets": tuple(sites), "secret_sites": sites})
        scrubber = self.vaults.scrubber_for(tool.server)
        if scrubber is None:
            return await self.inner.call(tool, arguments, context)
        try:
            return scrubber.scrub_result(await self.inner.call(tool, arguments, context))
        except AnnabelleError as error:
            raise scrubber.scrub_error(error) from None


def _is_internal_call(context: CallContext) -> bool:
    """Conversations are kept, and looked through before a turn, by calls that no model chose: a handle in what was said
    is just a word there. A model's own calls always have an id."""
    return context.caller == "hub" or (context.caller == "agent" and context.call_id is None)


@dataclass(frozen=True, slots=True)
class RejectSecrets:
    """Refuses calls of agents that carry a secret, before anybody is asked about them or writes them down.

    They can not be asked about: the question would show a mask, and who approves has to see the exact call. People may
    call tools with what they like. A mask is refused where something is done: it would be written over what it hides.
    """

    inner: ToolClient
    redact: Redactor

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.caller == "agent" and context.call_id is not None:
            if self.redact.distinctive_secrets.found_in(arguments):
                raise NotAllowed(
                    f"{tool.name} was not called: the arguments hold a secret of this home.",
                    hint="Secrets go to tools as handles only; tell the user to enter it themselves.",
                )
            if not tool.annotations.read_only and any(MASK in text for text in iterate_texts(arguments)):
                raise NotAllowed(
                    f"{tool.name} was not called: {MASK} stands for a secret that is not shown.",
                    hint="Leave that part out, or ask the user to do it themselves.",
                )
        return await self.inner.call(tool, arguments, context)


@dataclass(frozen=True, slots=True)
class RedactOutput:
    """Right around the server: what comes back is scanned, recorded and shown without the secret."""

    inner: ToolClient
    redact: Redactor

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        known = self.redact.distinctive_secrets
        if tool.audience == "hub":  # between the hub and its own servers: the vault gives values here
            return await self.inner.call(tool, arguments, context)
        try:
            result = await self.inner.call(tool, arguments, context)
        except AnnabelleError as error:
            written = self.redact.written
            if not written.found_in([error.message, error.hint, error.field]):
                raise
            raise _redact_error(error, written) from None
        error = result.error
        known = self.redact.written if result.is_error else known
        if not known.found_in((result.text, result.structured, None if error is None else error.model_dump())):
            return result
        if error is not None:
            error = error.model_copy(
                update={"message": known.mask(error.message), "hint": _mask_optional(known, error.hint), "field": None}
            )
        structured = None if result.structured is None else known.mask_object(result.structured)
        return result.model_copy(update={"text": known.mask(result.text), "structured": structured, "error": error})


def _mask_optional(known: SecretMatcher, text: str | None) -> str | None:
    return None if text is None else known.mask(text)


def _redact_error(error: E, known: SecretMatcher) -> E:
    """The same error in words without secrets; what led to it is cut off, for a log shows that too."""
    error.message, error.hint = known.mask(error.message), _mask_optional(known, error.hint)
    error.field = _mask_optional(known, error.field)
    error.args = (error.message,)
    error.__cause__, error.__suppress_context__ = None, True
    return error
