"""Labels at Google, which may be named by id or by name."""

from __future__ import annotations

from urllib.parse import quote

from annabelle.core.errors import Conflict, NotAllowed, NotFound
from annabelle.servers.gmail.google import GoogleSession
from annabelle.servers.gmail.mail import google_messages as wire
from annabelle.servers.gmail.mail.models import Label

_LABELS = "/gmail/v1/users/me/labels"
_SYSTEM = frozenset({"INBOX", "SENT", "DRAFT", "TRASH", "SPAM", "UNREAD", "STARRED", "IMPORTANT"})


class GoogleLabels:
    """The labels of one account, asked for when they are needed."""

    def __init__(self, session: GoogleSession) -> None:
        self._session = session

    async def all(self) -> list[Label]:
        page = await self._session.request("GET", _LABELS)
        return [
            Label(
                wire.text(one, "id"), wire.text(one, "name"), "user" if wire.text(one, "type") == "user" else "system"
            )
            for one in wire.entries(page, "labels")
        ]

    async def create(self, name: str) -> Label:
        shown = {"labelListVisibility": "labelShow", "messageListVisibility": "show"}
        try:
            made = await self._session.request("POST", _LABELS, json={"name": name, **shown})
        except Conflict as error:
            raise Conflict(f"There is a label {name} already.", field="name") from error
        return Label(wire.text(made, "id"), wire.text(made, "name"), "user")

    async def delete(self, label_id: str) -> Label:
        label = await self._find(label_id)
        if label.kind == "system":
            raise NotAllowed(f"{label.name} belongs to the mailbox and can not be deleted.", field="label_id")
        await self._session.request("DELETE", f"{_LABELS}/{quote(label.id, safe='')}")
        return label

    async def ids(self, labels: tuple[str, ...]) -> tuple[str, ...]:
        """Ids for labels that were named by id or by name; nothing is asked where they are ids for sure."""
        if all(label.startswith("Label_") or label in _SYSTEM for label in labels):
            return labels
        return tuple([(await self._find(label)).id for label in labels])

    async def _find(self, label: str) -> Label:
        known = await self.all()
        same = [one for one in known if one.id == label] or [one for one in known if one.name.lower() == label.lower()]
        if not same:
            raise NotFound(
                f"There is no label {label[:100]!r}.", hint="list_labels shows them, create_label makes one."
            )
        return same[0]
