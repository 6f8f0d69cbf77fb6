"""Tools for contacts: the people the user knows."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from annabelle.core.result_text import for_model
from annabelle.core.trust import ContactType, Trust
from annabelle.servers.kit import Result, current_call, deferred_module, tool
from annabelle.servers.memory.arguments import (
    Label,
    Name,
    Notes,
    RowId,
    drop_missing,
    lowest_trust,
    refuse_secrets,
    resolve_origin,
    resolve_owner,
)
from annabelle.servers.memory.lazy_memory import MemoryTools

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from annabelle.store.memory import contacts
else:
    contacts = deferred_module("annabelle.store.memory.contacts")

MAX_LISTED = 200
_ADDRESS = re.compile(r"[^@\s<>,;\"]+@[^@\s<>,;\"]+")


def check_email_address(text: str) -> str:
    """An e-mail address, and nothing around it."""
    if not _ADDRESS.fullmatch(text.strip()):
        raise ValueError("it is not an e-mail address, as in ada@example.org")
    return text.strip()


Agent = Annotated[str | None, Field(description="The agent whose contacts are meant; leave it out for your own")]
Email = Annotated[str, Field(max_length=320), AfterValidator(check_email_address)]


class ContactShown(BaseModel):
    """A contact as it is shown."""

    model_config = ConfigDict(frozen=True, from_attributes=True)

    id: int
    name: str
    email: str
    company: str | None
    role: str | None
    type: ContactType
    notes: str | None
    trust: Trust
    created_at: datetime
    updated_at: datetime

    def to_line(self) -> str:
        where = ", ".join(part for part in (self.role, self.company) if part)
        marks = [str(mark) for mark in (self.type, self.trust) if mark not in ("work", "trusted")]
        return "".join(
            (
                f"{for_model(f'{self.id}  ')}{self.name} <{self.email}>",
                f" – {where}" if where else "",
                f" ({', '.join(marks)})" if marks else "",
            )
        )


class ContactSaved(Result):
    """A contact that was made or changed."""

    contact: ContactShown
    outcome: str = Field(description="created or updated")
    trust: Trust

    def to_text(self) -> str:
        return f"{self.outcome.capitalize()} contact {self.contact.to_line()}"


class ContactList(Result):
    """Contacts, the latest change first."""

    contacts: list[ContactShown]
    more: bool = Field(description="Whether there are others that fit")
    trust: Trust

    def to_text(self) -> str:
        lines = [contact.to_line() for contact in self.contacts] or ["No contact fits."]
        return "\n".join([*lines, *(["There are more: narrow it down, or raise limit."] if self.more else [])])


class ContactTools(MemoryTools):
    """create_contact, list_contacts and update_contact."""

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def create_contact(
        self,
        name: Annotated[Name, Field(description="The person's name")],
        email: Annotated[Email, Field(description="Their e-mail address; one contact has it")],
        agent_id: Agent = None,
        company: Annotated[Label | None, Field(description="Where they work")] = None,
        role: Annotated[Label | None, Field(description="What they do there")] = None,
        type: Annotated[ContactType, Field(description="ignored is for somebody not to be bothered with")] = "work",
        notes: Annotated[Notes | None, Field(description="Anything else worth knowing")] = None,
    ) -> ContactSaved:
        """Add a person to the user's contacts. An address that a contact already has is refused with the id of that
        contact: change it with update_contact."""
        call = current_call()
        owner, (trust, origin) = resolve_owner(call, agent_id), resolve_origin(call)
        values = drop_missing(name=name, email=email, company=company, role=role, type=type, notes=notes)
        refuse_secrets("contact", values)
        row = {**values, "trust": trust, "origin": origin}
        made = await self._write(lambda c: contacts.create_contact(c, owner, row))
        return ContactSaved(contact=ContactShown.model_validate(made), outcome="created", trust=made.trust)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_contacts(
        self,
        agent_id: Agent = None,
        email: Annotated[str | None, Field(max_length=320, description="Exactly this address")] = None,
        company: Annotated[Label | None, Field(description="A part of the company's name")] = None,
        type: Annotated[ContactType | None, Field(description="Only this type")] = None,
        name: Annotated[Label | None, Field(description="A part of the person's name")] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_LISTED, description="How many at most")] = 50,
    ) -> ContactList:
        """Find people among the user's contacts, by a part of their name or company, by address or by type."""
        owner = resolve_owner(current_call(), agent_id)
        wanted = contacts.ContactFilter(email=email or None, name=name or None, company=company or None, type=type)
        found = await self._read(lambda c: contacts.list_contacts(c, owner, wanted, limit + 1))
        rows = [ContactShown.model_validate(contact) for contact in found[:limit]]
        return ContactList(contacts=rows, more=len(found) > limit, trust=lowest_trust(*(row.trust for row in rows)))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=False)
    async def update_contact(
        self,
        contact_id: Annotated[RowId, Field(description="The contact, by its id")],
        name: Annotated[Name | None, Field(description="New name")] = None,
        email: Annotated[Email | None, Field(description="New e-mail address")] = None,
        company: Annotated[Label | None, Field(description="New company; an empty text removes it")] = None,
        role: Annotated[Label | None, Field(description="New role; an empty text removes it")] = None,
        type: Annotated[ContactType | None, Field(description="New type")] = None,
        notes: Annotated[Notes | None, Field(description="New notes; an empty text removes them")] = None,
        agent_id: Agent = None,
    ) -> ContactSaved:
        """Change what is given of a contact and leave the rest as it is."""
        call = current_call()
        owner, (trust, origin) = resolve_owner(call, agent_id), resolve_origin(call)
        values = drop_missing(name=name, email=email, company=company, role=role, type=type, notes=notes)
        refuse_secrets("contact", values)

        def change_contact(connection: Connection) -> contacts.Contact:
            old = contacts.get_contact(connection, owner, contact_id)
            before = {field: getattr(old, field) for field in values}
            # What it said before stays known: an address is not swapped without a trace.
            label = {"trust": lowest_trust(old.trust, trust), "origin": {**origin, "before": before}}
            return contacts.change_contact(connection, owner, contact_id, {**values, **label})

        changed = await self._write(change_contact)
        return ContactSaved(contact=ContactShown.model_validate(changed), outcome="updated", trust=changed.trust)
