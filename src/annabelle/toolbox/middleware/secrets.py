"""Keeps secrets away from models: rejects them in arguments, resolves handles, and redacts results (POL-06, I-30)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar, cast

from annabelle.core.errors import AnnabelleError, ErrorBody, NotAllowed, RetryByModel, Unavailable, UnknownTool
from annabelle.core.ports import ToolClient
from annabelle.core.secrets.encodings import encodings_of
from annabelle.core.secrets.matcher import iterate_texts, map_texts
from annabelle.core.secrets.redactor import MASK, Redactor
from annabelle.core.tools import CallContext, JsonObject, ToolResult, ToolSpec
from annabelle.toolbox.catalogue import ToolCatalogue

E = TypeVar("E", bound=AnnabelleError)


class SecretScrubber:
    """Replaces secret values, also escaped, encoded or split into lines, by their handles."""

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
        error, change = result.error, self.scrub_text
        if error is not None:
            fields = {"message": change(error.message), "hint": _map(change, error.hint)}
            error = error.model_copy(update={**fields, "field": _map(change, error.field)})
        structured = cast("JsonObject | None", map_texts(result.structured, change))
        return _change_result(result, change, structured, error)


def _map(change: Callable[[str], str], text: str | None) -> str | None:
    return None if text is None else change(text)


def _change_result(
    result: ToolResult, change: Callable[[str], str], structured: JsonObject | None, error: ErrorBody | None
) -> ToolResult:
    texts = {"text": change(result.text), "display": _map(change, result.display)}
    return result.model_copy(update={**texts, "structured": structured, "error": error})


def _rewrite_error(error: E, change: Callable[[str], str]) -> E:
    """Apply `change` to the texts of an error and cut off its cause, which a log would show too."""
    error.message, error.hint, error.field = change(error.message), _map(change, error.hint), _map(change, error.field)
    error.args = (error.message,)
    error.__cause__, error.__suppress_context__ = None, True
    return error


_REVEAL = "reveal"
_MOST = 200
_UNMISTAKABLE = 8
"""Minimum length of a value that is searched in the results of every server."""


@dataclass(frozen=True, slots=True)
class VaultSecret:
    """A value, and the sites it may be used on; none if it is bound to no site."""

    value: str = field(repr=False)
    sites: tuple[str, ...] = ()


class SecretVaults:
    """Asks the server that issued a handle for its value, on behalf of the caller.

    Values stay in memory: a form that was filled in shows its value in the next snapshot or in a saved page, and must
    show the handle there. Short values such as a PIN are searched only in results of the server that got them, because
    elsewhere they would match any number.
    """

    def __init__(self, catalogue: ToolCatalogue) -> None:
        self._catalogue = catalogue
        self._known_values: dict[tuple[str | None, str], str] = {}
        self._scrubbers: dict[str, SecretScrubber | None] = {}

    async def secret(self, handle: str, vault: str, context: CallContext) -> VaultSecret:
        """The value of a handle, if this caller may have it."""
        try:
            offer = self._catalogue.find(f"{vault}_{_REVEAL}", None, "hub")
        except UnknownTool:
            offer = None
        # Only built-in servers can have a tool for the hub, so no external one is asked.
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
        """Note that this server was given these values."""
        for value, handle in handles_by_value.items():
            place = None if len(value) >= _UNMISTAKABLE else server
            self._known_values.pop((place, value), None)
            self._known_values[place, value] = handle
        while len(self._known_values) > _MOST:
            del self._known_values[next(iter(self._known_values))]
        self._scrubbers.clear()

    def scrubber_for(self, server: str) -> SecretScrubber | None:
        """The scrubber for results of this server; None if it was given no secret."""
        if server not in self._scrubbers:
            values = {value: handle for (place, value), handle in self._known_values.items() if place in (None, server)}
            self._scrubbers[server] = SecretScrubber(values) if values else None
        return self._scrubbers[server]


_SCHEME = "secret://"
_HANDLE = re.compile(r"secret://([a-z0-9][a-z0-9_-]{0,39})/[a-z0-9]{16,64}")


def find_handles(arguments: JsonObject) -> dict[str, str]:
    """Every handle in the arguments, with the server that issued it."""
    found: dict[str, str] = {}

    def collect_handles(text: str) -> str:
        if _SCHEME in text:
            found.update((match[0], match[1]) for match in _HANDLE.finditer(text))
        return text

    map_texts(arguments, collect_handles)
    return found


def insert_values(arguments: JsonObject, values: Mapping[str, str]) -> JsonObject:
    """The arguments with values instead of handles."""

    def replace_handles(text: str) -> str:
        return _HANDLE.sub(lambda match: values.get(match[0], match[0]), text) if _SCHEME in text else text

    return cast("JsonObject", map_texts(arguments, replace_handles))


@dataclass(frozen=True, slots=True)
class ResolveSecrets:
    """Replaces handles by values for tools whose manifest says `takes_secrets`; refuses them for all others."""

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
            raise _rewrite_error(error, scrubber.scrub_text) from None


def _is_internal_call(context: CallContext) -> bool:
    """Calls that no model chose, such as storing a conversation: a handle in them is plain text. A model's own calls
    always have an id."""
    return context.caller == "hub" or (context.caller == "agent" and context.call_id is None)


@dataclass(frozen=True, slots=True)
class RejectSecrets:
    """Refuses an agent's calls that carry a secret, before they are recorded or anyone is asked about them.

    A person cannot approve them: the question would show a mask instead of the exact call. People's own calls may
    carry secrets. A mask is refused in calls that change something: it would overwrite the secret it stands for.
    """

    inner: ToolClient
    redact: Redactor

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        if context.caller == "agent" and context.call_id is not None:
            if self.redact.distinctive_secrets.found_in(arguments):
                raise NotAllowed(
                    "This was not done: there is a secret of this home in it.",
                    hint=f"{tool.name} was not called. Secrets go to tools as handles only; tell the user to enter it "
                    "themselves.",
                )
            if not tool.annotations.read_only and any(MASK in text for text in iterate_texts(arguments)):
                raise NotAllowed(
                    f"This was not done: {MASK} stands for a secret that is not shown.",
                    hint=f"{tool.name} was not called. Leave that part out, or ask the user to do it themselves.",
                )
        return await self.inner.call(tool, arguments, context)


@dataclass(frozen=True, slots=True)
class RedactOutput:
    """Innermost, so that results are scanned, recorded and shown without secrets."""

    inner: ToolClient
    redact: Redactor

    async def call(self, tool: ToolSpec, arguments: JsonObject, context: CallContext) -> ToolResult:
        known = self.redact.distinctive_secrets
        if tool.audience == "hub":  # internal calls: the vault returns values here
            return await self.inner.call(tool, arguments, context)
        try:
            result = await self.inner.call(tool, arguments, context)
        except AnnabelleError as error:
            written = self.redact.written
            if not written.found_in([error.message, error.hint, error.field]):
                raise
            raise _rewrite_error(error, written.mask) from None
        error = result.error
        known = self.redact.written if result.is_error else known
        if not known.found_in(
            (result.text, result.display, result.structured, None if error is None else error.model_dump())
        ):
            return result
        if error is not None:
            fields = {"message": known.mask(error.message), "hint": _map(known.mask, error.hint), "field": None}
            error = error.model_copy(update=fields)
        structured = None if result.structured is None else known.mask_object(result.structured)
        return _change_result(result, known.mask, structured, error)
