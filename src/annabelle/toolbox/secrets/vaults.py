"""Where the values behind handles come from, and who may repeat them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from annabelle.core.errors import RetryByModel, Unavailable, UnknownTool
from annabelle.core.tools import CallContext
from annabelle.toolbox.catalogue import Catalogue
from annabelle.toolbox.secrets.scrubbing import Scrubber

_REVEAL = "reveal"
_MOST = 200
_UNMISTAKABLE = 8
"""Characters from which on a value is looked for in the answers of every server."""


@dataclass(frozen=True, slots=True)
class VaultSecret:
    """A value, and the web addresses of the item it is of; none where it is bound to no site."""

    value: str = field(repr=False)
    sites: tuple[str, ...] = ()


class Vaults:
    """Asks the server a handle came from, in the name of the one who calls; it knows to whom it gave the handle.

    A value that was told stays known here, in memory: a form that was filled in shows it in the next snapshot, a page
    that was saved in a file, and then the handle must stand there too. A short one, a PIN perhaps, is only looked for
    where it was told: elsewhere it would be found in every number.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._told: dict[tuple[str | None, str], str] = {}
        self._scrubbers: dict[str, Scrubber | None] = {}

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

    def tell(self, server: str, handles_by_value: dict[str, str]) -> None:
        """From now on this server knows these values."""
        for value, handle in handles_by_value.items():
            place = None if len(value) >= _UNMISTAKABLE else server
            self._told.pop((place, value), None)
            self._told[place, value] = handle
        while len(self._told) > _MOST:
            del self._told[next(iter(self._told))]
        self._scrubbers.clear()

    def scrubber(self, server: str) -> Scrubber | None:
        """For what this server gives back; None when there is nothing it could repeat."""
        if server not in self._scrubbers:
            values = {value: handle for (place, value), handle in self._told.items() if place in (None, server)}
            self._scrubbers[server] = Scrubber(values) if values else None
        return self._scrubbers[server]
