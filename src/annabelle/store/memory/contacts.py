"""Contacts: the people an owner knows, one row per address."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sqlalchemy import Connection, select

from annabelle.core.errors import NotFound
from annabelle.core.tools import JsonObject
from annabelle.core.trust import ContactType, Trust
from annabelle.store.memory.named_rows import NamedRows
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import contains_text, load_row
from annabelle.store.memory.tables import contacts
from annabelle.store.portable_sql import RowValues


@dataclass(frozen=True, slots=True)
class Contact:
    id: int
    name: str
    email: str
    company: str | None
    role: str | None
    type: ContactType
    notes: str | None
    trust: Trust
    origin: JsonObject
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class ContactFilter:
    """Selects contacts; name and company match parts of words."""

    email: str | None = None
    name: str | None = None
    company: str | None = None
    type: ContactType | None = None


def normalize_address(email: str) -> str:
    """Returns the spelling under which an address is stored and looked up."""
    return email.strip().lower()


_rows = NamedRows(contacts, Contact, "email", "{which} already has the address {name}.")
get_contact = _rows.get
find_contact = _rows.find


def create_contact(connection: Connection, owner: Owner, values: RowValues) -> Contact:
    """Adds a contact; Conflict if another one has the address."""
    return _rows.add(connection, owner, _with_normal_address(values))


def find_by_email(connection: Connection, owner: Owner, email: str) -> Contact | None:
    """Finds the contact with this address in any spelling."""
    return _rows.find_by_name(connection, owner, normalize_address(email))


def change_contact(connection: Connection, owner: Owner, contact_id: int, values: RowValues) -> Contact:
    """Changes only the given values. Conflict if another contact has the address."""
    return _rows.change(connection, owner, contact_id, _with_normal_address(values))


def _with_normal_address(values: RowValues) -> RowValues:
    return {**values, "email": normalize_address(str(values["email"]))} if "email" in values else values


def list_contacts(connection: Connection, owner: Owner, wanted: ContactFilter, limit: int) -> list[Contact]:
    """Lists matching contacts, last changed first."""
    query = (
        select(contacts).where(owner.row_filter(contacts)).order_by(contacts.c.updated_at.desc(), contacts.c.id.desc())
    )
    if wanted.email is not None:
        query = query.where(contacts.c.email == normalize_address(wanted.email))
    if wanted.type is not None:
        query = query.where(contacts.c.type == wanted.type)
    rows = (
        row
        for row in connection.execute(query).mappings()
        if contains_text(row["name"], wanted.name) and contains_text(row["company"], wanted.company)
    )
    return [load_row(Contact, row) for row in islice(rows, limit)]


def require_contacts(connection: Connection, owner: Owner, contact_ids: Collection[int]) -> None:
    """Raises NotFound unless all of these are contacts of this owner."""
    query = select(contacts.c.id).where(owner.row_filter(contacts), contacts.c.id.in_(contact_ids))
    missing = sorted(set(contact_ids) - set(connection.scalars(query)))
    if missing:
        raise NotFound(f"There is no contact {', '.join(map(str, missing))}.", hint="Create it first, or leave it out.")
