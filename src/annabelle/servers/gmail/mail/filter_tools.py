"""Tools for filters: what is done with mail when it comes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.gmail.mail.desk import Desk
from annabelle.servers.gmail.mail.models import Filter, FilterAction, FilterCriteria
from annabelle.servers.gmail.mail.recipients import one_line, parse_recipients
from annabelle.servers.kit import Result, tool

FilterId = Annotated[
    str, Field(description="Id of the filter, from list_filters", min_length=1, max_length=300, pattern=r"^[\w.=-]+$")
]
Words = Annotated[str | None, Field(max_length=1_000)]


class Criteria(BaseModel):
    """Which mails a filter is for; all that is given must fit."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    sender: Words = Field(default=None, alias="from", description="Sender")
    to: Words = Field(default=None, description="Recipient")
    subject: Words = Field(default=None, description="Words of the subject")
    query: Words = Field(default=None, description="A search as in list_emails")
    has_attachment: bool | None = Field(default=None, description="With, or without, an attachment")
    size: int | None = Field(default=None, ge=0, le=10**10, description="Bytes")
    size_comparison: Literal["larger", "smaller"] | None = Field(
        default=None, description="larger or smaller than size"
    )


class Action(BaseModel):
    """What is done with them."""

    model_config = ConfigDict(extra="forbid")

    add_label_ids: list[str] | None = Field(default=None, max_length=20, description="Labels they get")
    remove_label_ids: list[str] | None = Field(
        default=None, max_length=20, description="Labels they lose; INBOX archives, UNREAD marks as read"
    )
    forward: str | None = Field(default=None, max_length=320, description="Address they are forwarded to; Google only")


class FilterShown(Result):
    id: str
    criteria: dict[str, str | int | bool]
    action: dict[str, str | list[str]]
    notice: str | None = None


class FilterList(Result):
    filters: list[FilterShown]


class FilterGone(Result):
    filter_id: str
    deleted: bool = True


class FilterTools:
    """list_filters, get_filter, create_filter and delete_filter."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_filters(self) -> FilterList:
        """List the filters: which mails they are for, and what they do."""
        return FilterList(filters=[_shown(one) for one in (await self._desk.mailbox.filters())[:500]])

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_filter(self, filter_id: FilterId) -> FilterShown:
        """Show one filter."""
        return _shown(await self._desk.mailbox.filter(filter_id))

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def create_filter(
        self,
        criteria: Annotated[Criteria, Field(description="Which mails it is for")],
        action: Annotated[Action, Field(description="What it does with them")],
    ) -> FilterShown:
        """Make a filter for mail that comes from now on. Google applies it by itself; in any other mailbox Annabelle
        does, when new mail is looked at, and can not forward."""
        if not any(value is not None for value in criteria.model_dump().values()):
            raise InvalidArguments("A filter needs at least one criterion.", field="criteria")
        if not any(action.model_dump().values()):
            raise InvalidArguments("A filter needs something to do.", field="action")
        if criteria.size_comparison is not None and criteria.size is None:
            raise InvalidArguments("size_comparison needs a size.", field="criteria.size")
        mailbox = self._desk.mailbox
        made = await mailbox.create_filter(_criteria(criteria), _action(action))
        return _shown(made, mailbox.filters_note)

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_filter(self, filter_id: FilterId) -> FilterGone:
        """Delete a filter. Mails it has handled stay as they are."""
        await self._desk.mailbox.delete_filter(filter_id)
        return FilterGone(filter_id=filter_id)


def _criteria(given: Criteria) -> FilterCriteria:
    def words(value: str | None, field: str) -> str | None:
        return one_line(value, f"criteria.{field}") or None if value is not None else None

    return FilterCriteria(
        sender=words(given.sender, "from"),
        to=words(given.to, "to"),
        subject=words(given.subject, "subject"),
        query=words(given.query, "query"),
        has_attachment=given.has_attachment,
        size=given.size,
        size_comparison=given.size_comparison,
    )


def _action(given: Action) -> FilterAction:
    forward = parse_recipients(given.forward, "action.forward")
    if len(forward) > 1:
        raise InvalidArguments("A filter forwards to one address.", field="action.forward")
    return FilterAction(
        tuple(given.add_label_ids or ()),
        tuple(given.remove_label_ids or ()),
        forward[0].addr_spec if forward else None,
    )


def _shown(found: Filter, notice: str | None = None) -> FilterShown:
    criteria: dict[str, str | int | bool | None] = {
        "from": found.criteria.sender,
        "to": found.criteria.to,
        "subject": found.criteria.subject,
        "query": found.criteria.query,
        "has_attachment": found.criteria.has_attachment,
        "size": found.criteria.size,
        "size_comparison": found.criteria.size_comparison,
    }
    action: dict[str, str | list[str] | None] = {
        "add_label_ids": list(found.action.add_label_ids) or None,
        "remove_label_ids": list(found.action.remove_label_ids) or None,
        "forward": found.action.forward,
    }
    return FilterShown(
        id=found.id,
        criteria={name: value for name, value in criteria.items() if value is not None},
        action={name: value for name, value in action.items() if value is not None},
        notice=notice,
    )
