"""Items and secrets: what they are called is shown, what they hold is kept behind handles."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from annabelle.core.errors import NotAllowed, NotFound
from annabelle.servers.kit import Result, current_call, tool
from annabelle.servers.onepassword.command import OpCommand
from annabelle.servers.onepassword.concealing import is_concealed, shown_address
from annabelle.servers.onepassword.handles import Handles, Holder, Secret
from annabelle.servers.onepassword.items import ITEM, OpField, OpItem
from annabelle.servers.onepassword.names import checked_name, checked_reference

_MOST_FIELDS = 100
_MOST_CHARS = 500
_ONE_TIME = "?attribute=otp"
_SHORTEST_HIDDEN = 4


class FieldShown(BaseModel):
    label: str
    section: str | None = None
    type: str
    value: str | None = Field(default=None, description="Of fields that are no secret")
    handle: str | None = Field(default=None, description="Of secret fields: give it to a tool that takes secrets")


class ItemShown(Result):
    id: str
    title: str
    category: str
    vault: str | None = None
    urls: list[str]
    tags: list[str]
    files: list[str]
    fields: list[FieldShown]


class SecretShown(Result):
    handle: str = Field(description="Stands for the value; a tool that takes secrets gets the value in its place")
    item: str
    field: str
    urls: list[str] = Field(description="The only sites it may be typed into")
    good_for_seconds: int

    def text(self) -> str:
        return (
            f"{self.handle} stands for the {self.field} of {self.item}, for {self.good_for_seconds // 60} minutes. "
            "Give it as it is to a tool that takes secrets; the value itself is not shown."
        )


class Revealed(Result):
    value: str = Field(repr=False)
    sites: list[str] = Field(default_factory=list, description="The only sites it is for, if its item names any")

    def text(self) -> str:
        return "The value is in the structured part."


class Reading:
    """`op item get` and `op read`, with handles in place of values."""

    def __init__(self, command: OpCommand, handles: Handles) -> None:
        self._command, self._handles = command, handles

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_item(
        self,
        item: Annotated[str, Field(max_length=200, description="Title or id of the item")],
        vault: Annotated[str | None, Field(max_length=200, description="Name or id of its vault")] = None,
    ) -> ItemShown:
        """Show an item: its fields with their values, and a handle in place of each secret one."""
        arguments = ["item", "get", checked_name(item, "item")]
        if vault is not None:
            arguments.append(f"--vault={checked_name(vault, 'vault')}")
        found = await self._command.json(ITEM, *arguments)
        return self._shown(found)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def read_secret(
        self,
        reference: Annotated[str, Field(max_length=600, description="op://vault/item/field, or …/section/field")],
    ) -> SecretShown:
        """Get a handle for one secret. Pass the handle to a tool that takes secrets, such as the browser's typing."""
        checked = checked_reference(reference)
        vault, name, *_, label = checked.removeprefix("op://").partition("?")[0].split("/")
        arguments = ["item", "get", checked_name(name, "reference"), f"--vault={checked_name(vault, 'reference')}"]
        item = await self._command.json(ITEM, *arguments)
        value = await self._command.text("read", "--no-newline", checked)
        if not value:
            raise NotFound("This field is empty.")
        again = checked if checked.endswith((_ONE_TIME, "?attribute=totp")) else None
        secret = Secret(item.title, label, None if again else value, again, _sites(item))
        return SecretShown(
            handle=self._handles.keep(secret, _holder()),
            item=secret.item,
            field=secret.label,
            urls=list(secret.sites),
            good_for_seconds=int(self._handles.seconds),
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True, audience="hub")
    async def reveal(self, handle: Annotated[str, Field(max_length=100, description="A handle")]) -> Revealed:
        """Give the hub the value a handle stands for, on its way to a tool that takes secrets."""
        if current_call().caller != "hub":
            raise NotAllowed("Only the hub may see a secret.")
        secret = self._handles.find(handle, _holder())
        value = secret.value or ""
        if secret.reference is not None:
            value = await self._command.text("read", "--no-newline", secret.reference)
        return Revealed(value=value, sites=list(secret.sites))

    def _shown(self, item: OpItem) -> ItemShown:
        concealed = {index: field for index, field in enumerate(item.fields) if is_concealed(field, item.category)}
        handles = {index: self._keep(item, field) for index, field in concealed.items() if field.value}
        values = {field.value: handles[index] for index, field in concealed.items() if field.value}

        def plain(text: str) -> str:
            """What is shown never repeats what is hidden, as a title with the password in it would."""
            for value, handle in values.items():
                if len(value) >= _SHORTEST_HIDDEN or text == value:
                    text = text.replace(value, handle)
            return text[:_MOST_CHARS]

        fields = [
            FieldShown(
                label=plain(field.name),
                section=(plain(field.section.label) or None) if field.section else None,
                type=field.type,
                value=None if index in concealed or field.value is None else plain(_harmless(field)),
                handle=handles.get(index),
            )
            for index, field in enumerate(item.fields[:_MOST_FIELDS])
        ]
        return ItemShown(
            id=item.id,
            title=plain(item.title),
            category=item.category,
            vault=item.vault.name if item.vault else None,
            urls=[plain(address) for address in _sites(item)],
            tags=[plain(tag) for tag in item.tags[:20]],
            files=[plain(file.name) for file in item.files[:20]],
            fields=fields,
        )

    def _keep(self, item: OpItem, field: OpField) -> str:
        again = None
        if field.type == "OTP" and item.vault is not None:
            again = f"op://{item.vault.id}/{item.id}/{field.id}{_ONE_TIME}"
        secret = Secret(item.title, field.name, None if again else field.value, again, _sites(item))
        return self._handles.keep(secret, _holder())


def _harmless(field: OpField) -> str:
    value = field.value or ""
    return shown_address(value) if field.type == "URL" else value


def _sites(item: OpItem) -> tuple[str, ...]:
    return tuple(address for url in item.urls if (address := shown_address(url.href)))


def _holder() -> Holder:
    call = current_call()
    return Holder(call.agent_id, call.user_id)
