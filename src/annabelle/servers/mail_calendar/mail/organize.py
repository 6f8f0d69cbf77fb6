"""Tools that trash, mark and label mails, and manage labels and filters."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from annabelle.core.errors import InvalidArguments
from annabelle.core.result_text import for_model
from annabelle.servers.kit import Result, tool
from annabelle.servers.mail_calendar.mail.headers import parse_recipients, require_one_line
from annabelle.servers.mail_calendar.mail.mail_context import Labels, MailToolGroup, MessageId
from annabelle.servers.mail_calendar.mail.mailbox import FilterAction, FilterCriteria, MailFilter, MailLabel


class MailTrashed(Result):
    id: str = Field(description="Id of the mail in the trash")
    trashed: bool = True

    def to_text(self) -> str:
        return f"The mail is in the trash now{for_model(f' (id {self.id})')}."


class MailRelabelled(Result):
    id: str = Field(description="Id of the mail from now on; it changes where a label is a folder")
    labels: list[str]


class MailFilingTools(MailToolGroup):
    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_email(self, message_id: MessageId) -> MailTrashed:
        """Move a mail to the trash, from where the user can bring it back for a while."""
        return MailTrashed(id=await self._context.mailbox.trash(message_id))

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def mark_read(
        self, message_id: MessageId, read: Annotated[bool, Field(description="true for read, false for unread")]
    ) -> MailRelabelled:
        """Mark a mail as read or unread."""
        unread = ("UNREAD",)
        add, remove = ((), unread) if read else (unread, ())
        now, labels = await self._context.mailbox.relabel(message_id, add, remove)
        return MailRelabelled(id=now, labels=labels)

    @tool(read_only=False, destructive=False, idempotent=True, open_world=True)
    async def modify_labels(
        self, message_id: MessageId, add_label_ids: Labels = None, remove_label_ids: Labels = None
    ) -> MailRelabelled:
        """Add labels to a mail and remove others: UNREAD, STARRED, INBOX (removing it archives), or the user's own.
        In a mailbox without Google a label is a folder: adding one copies the mail, adding and removing moves it."""
        add, remove = tuple(add_label_ids or ()), tuple(remove_label_ids or ())
        if not add and not remove:
            raise InvalidArguments("Name a label to add or to remove.", field="add_label_ids")
        both = {label.lower() for label in add} & {label.lower() for label in remove}
        if both:
            raise InvalidArguments("The same label can not be added and removed.", field="remove_label_ids")
        now, labels = await self._context.mailbox.relabel(message_id, add, remove)
        return MailRelabelled(id=now, labels=labels)


_LISTED = 500


class LabelList(Result):
    labels: list[MailLabel]

    def to_text(self) -> str:
        return "\n".join(f"{one.name} ({for_model(f'id {one.id}, ')}{one.kind})" for one in self.labels)


class LabelDeleted(Result):
    id: str
    name: str
    deleted: bool = True


class LabelTools(MailToolGroup):
    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_labels(self) -> LabelList:
        """List the labels that mails can have: those of the mailbox (INBOX, UNREAD, …) and the user's own."""
        return LabelList(labels=(await self._context.mailbox.labels())[:_LISTED])

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def create_label(
        self,
        name: Annotated[
            str, Field(description="Name; Work/Travel is Travel inside of Work", min_length=1, max_length=200)
        ],
    ) -> MailLabel:
        """Make a label. In a mailbox without Google it is a folder."""
        return await self._context.mailbox.create_label(require_one_line(name, "name"))

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_label(
        self, label_id: Annotated[str, Field(description="Id or name of the label", min_length=1, max_length=300)]
    ) -> LabelDeleted:
        """Delete one of the user's labels. Its mails stay; where a label is a folder they go to the archive."""
        label = await self._context.mailbox.delete_label(require_one_line(label_id, "label_id"))
        return LabelDeleted(id=label.id, name=label.name)


FilterId = Annotated[
    str, Field(description="Id of the filter, from list_filters", min_length=1, max_length=300, pattern=r"^[\w.=-]+$")
]
Words = Annotated[str | None, Field(max_length=1_000)]


class FilterCriteriaGiven(FilterCriteria):
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


class FilterList(Result):
    filters: list[MailFilter]


class FilterDeleted(Result):
    filter_id: str
    deleted: bool = True


class FilterTools(MailToolGroup):
    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_filters(self) -> FilterList:
        """List the filters: which mails they are for, and what they do."""
        return FilterList(filters=(await self._context.mailbox.filters())[:500])

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_filter(self, filter_id: FilterId) -> MailFilter:
        """Show one filter."""
        return await self._context.mailbox.filter(filter_id)

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def create_filter(
        self,
        criteria: Annotated[FilterCriteriaGiven, Field(description="Which mails it is for")],
        action: Annotated[FilterAction, Field(description="What it does with them")],
    ) -> MailFilter:
        """Make a filter for mail that comes from now on. Google applies it by itself; in any other mailbox Annabelle
        does, when new mail is looked at, and can not forward."""
        if not criteria.to_fields():
            raise InvalidArguments("A filter needs at least one criterion.", field="criteria")
        if not action.to_fields():
            raise InvalidArguments("A filter needs something to do.", field="action")
        if criteria.size_comparison is not None and criteria.size is None:
            raise InvalidArguments("A comparison of sizes needs a size.", field="criteria.size")
        mailbox = self._context.mailbox
        made = await mailbox.create_filter(_check_lines(criteria), _check_forward(action))
        return made.model_copy(update={"notice": mailbox.filters_note})

    @tool(read_only=False, destructive=True, idempotent=True, open_world=True)
    async def delete_filter(self, filter_id: FilterId) -> FilterDeleted:
        """Delete a filter. Mails it has handled stay as they are."""
        await self._context.mailbox.delete_filter(filter_id)
        return FilterDeleted(filter_id=filter_id)


def _check_lines(given: FilterCriteriaGiven) -> FilterCriteria:
    lines = {"from": given.sender, "to": given.to, "subject": given.subject, "query": given.query}
    checked = {
        name: require_one_line(text, f"criteria.{name}") or None for name, text in lines.items() if text is not None
    }
    return FilterCriteriaGiven.model_validate({**given.to_fields(), **checked})


def _check_forward(given: FilterAction) -> FilterAction:
    forward = parse_recipients(given.forward, "action.forward")
    if len(forward) > 1:
        raise InvalidArguments("A filter forwards to one address.", field="action.forward")
    return given.model_copy(update={"forward": forward[0].addr_spec if forward else None})
