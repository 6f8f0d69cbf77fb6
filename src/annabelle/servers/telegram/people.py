"""Tools about people: contacts, strangers, oneself."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.kit import tool
from annabelle.servers.telegram.line import Line
from annabelle.servers.telegram.results import People, PersonEntry

MAX_SHOWN = 500
_PHONE = re.compile(r"\+?[0-9]{5,15}")


class PeopleTools:
    """list_contacts, add_contact, search_users and get_me."""

    def __init__(self, line: Line) -> None:
        self._line = line

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_contacts(self) -> People:
        """List the contacts of the account by name; at most 500 are shown."""
        async with self._line.open() as api:
            found = sorted(await api.contacts(), key=lambda person: person.name.casefold())
        return People(people=[PersonEntry.of(one) for one in found[:MAX_SHOWN]], total=len(found))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def add_contact(
        self,
        phone: Annotated[
            str, Field(min_length=5, max_length=40, description="Number with its country code: +49 151 …")
        ],
        first_name: Annotated[str, Field(min_length=1, max_length=64, description="First name to keep them under")],
        last_name: Annotated[str | None, Field(max_length=64, description="Last name")] = None,
    ) -> PersonEntry:
        """Add somebody to the contacts by their phone number."""
        number = re.sub(r"[\s().-]", "", phone)
        if not _PHONE.fullmatch(number):
            raise InvalidArguments("This is not a phone number.", hint="Write it as +491511234567.", field="phone")
        async with self._line.open() as api:
            return PersonEntry.of(await api.add_contact(f"+{number.lstrip('+')}", first_name, last_name or ""))

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def search_users(
        self,
        query: Annotated[str, Field(min_length=1, max_length=100, description="A name, or a part of a username")],
        limit: Annotated[int, Field(ge=1, le=50, description="How many at most")] = 10,
    ) -> People:
        """Find people at Telegram by name or username, contacts first."""
        async with self._line.open() as api:
            found = await api.search_people(query, limit)
        return People(people=[PersonEntry.of(one) for one in found], total=len(found))

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_me(self) -> PersonEntry:
        """Tell which account this is."""
        async with self._line.open() as api:
            return PersonEntry.of(await api.me())
