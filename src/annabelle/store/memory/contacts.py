"""Contacts: the people an owner knows, one row per address."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, RowMapping, select, update
from sqlalchemy.exc import IntegrityError

from annabelle.core.errors import Conflict, NotFound
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.core.trust import ContactType, Trust
from annabelle.store.memory.owner import Owner
from annabelle.store.memory.query_parts import contains_text
from annabelle.store.memory.tables import contacts
from annabelle.store.portable_sql import InsertNew, RowValues

_insert = InsertNew(contacts, ("user_id", "agent_id", "email"))


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


def create_contact(connection: Connection, owner: Owner, values: RowValues) -> Contact:
    """Adds a contact; Conflict if another one has the address."""
    at, email = now(), normalize_address(str(values["email"]))
    empty = {"company": None, "role": None, "notes": None, "created_at": at, "updated_at": at}
    made = _insert.insert(connection, {**empty, **values, **owner.columns(), "email": email})
    if made is None:
        raise _address_conflict(connection, owner, email)
    return get_contact(connection, owner, made["id"])


def get_contact(connection: Connection, owner: Owner, contact_id: int) -> Contact:
    """Returns a contact of this owner; NotFound for anyone else's."""
    found = find_contact(connection, owner, contact_id)
    if found is None:
        raise NotFound(f"There is no contact {contact_id}.", hint="list_contacts shows the ones there are.")
    return found


def find_contact(connection: Connection, owner: Owner, contact_id: int) -> Contact | None:
    """Like `get_contact`, but returns None for a missing one."""
    query = select(contacts).where(owner.row_filter(contacts), contacts.c.id == contact_id)
    row = connection.execute(query).mappings().first()
    return None if row is None else _contact_from_row(row)


def find_by_email(connection: Connection, owner: Owner, email: str) -> Contact | None:
    """Finds the contact with this address in any spelling."""
    query = select(contacts).where(owner.row_filter(contacts), contacts.c.email == normalize_address(email))
    row = connection.execute(query).mappings().first()
    return None if row is None else _contact_from_row(row)


def change_contact(connection: Connection, owner: Owner, contact_id: int, values: RowValues) -> Contact:
    """Changes only the given values. Conflict if another contact has the address."""
    get_contact(connection, owner, contact_id)
    new: dict[str, object] = {"updated_at": now(), **values}
    if "email" in values:
        new["email"] = normalize_address(str(values["email"]))
    try:
        with connection.begin_nested():
            connection.execute(
                update(contacts).where(owner.row_filter(contacts), contacts.c.id == contact_id).values(new)
            )
    except IntegrityError as error:
        raise _address_conflict(connection, owner, str(new["email"])) from error
    return get_contact(connection, owner, contact_id)


def list_contacts(connection: Connection, owner: Owner, wanted: ContactFilter, limit: int) -> list[Contact]:
    """Lists matching contacts, last changed first."""
    query = (
        select(contacts).where(owner.row_filter(contacts)).order_by(contacts.c.updated_at.desc(), contacts.c.id.desc())
    )
    if wanted.email is not None:
        query = query.where(contacts.c.email == normalize_address(wanted.email))
    if wanted.type is not None:
        query = query.where(contacts.c.type == wanted.type)
    found: list[Contact] = []
    for row in connection.execute(query).mappings():
        if contains_text(row["name"], wanted.name) and contains_text(row["company"], wanted.company):
            found.append(_contact_from_row(row))
            if len(found) == limit:
                break
    return found


def require_contacts(connection: Connection, owner: Owner, contact_ids: Collection[int]) -> None:
    """Raises NotFound unless all of these are contacts of this owner."""
    query = select(contacts.c.id).where(owner.row_filter(contacts), contacts.c.id.in_(contact_ids))
    missing = sorted(set(contact_ids) - set(connection.scalars(query)))
    if missing:
        raise NotFound(f"There is no contact {', '.join(map(str, missing))}.", hint="Create it first, or leave it out.")


def _address_conflict(connection: Connection, owner: Owner, email: str) -> Conflict:
    existing = find_by_email(connection, owner, email)
    # Names only the number: a name may be someone else's words, and errors are read as ours.
    which = f"Contact {existing.id}" if existing else "Another contact"
    return Conflict(f"{which} already has the address {email}.", hint="Change that one with update_contact.")


def _contact_from_row(row: RowMapping) -> Contact:
    return Contact(**{field: row[field] for field in Contact.__dataclass_fields__})
