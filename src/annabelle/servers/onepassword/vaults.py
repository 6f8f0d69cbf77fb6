"""Tools that list and read vaults and items, with handles instead of secrets."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from annabelle.core.errors import NotAllowed, NotFound
from annabelle.servers.kit import Result, current_call, tool
from annabelle.servers.kit.pagination import get_page
from annabelle.servers.onepassword.command import OpCommand, check_categories, check_name, check_reference
from annabelle.servers.onepassword.op_items import (
    ITEM,
    OVERVIEWS,
    VAULTS,
    HandleHolder,
    HeldSecret,
    OpField,
    OpItem,
    OpOverview,
    OpVault,
    SecretHandles,
    is_secret_field,
    redact_address,
)

_PAGE = 50
_MAX_VAULTS = 200
_MAX_URLS = 5


class VaultList(Result):
    vaults: list[OpVault]


class ItemLine(BaseModel):
    id: str
    title: str
    category: str
    username: str | None = None
    urls: list[str] = []
    tags: list[str] = []


class ItemList(Result):
    items: list[ItemLine]
    total: int
    next_page: str | None = Field(default=None, description="Give it as page_token to see what follows")


class VaultListTools:
    """Lists, as `op vault list` and `op item list` give them."""

    def __init__(self, command: OpCommand) -> None:
        self._command = command

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_vaults(self) -> VaultList:
        """List the user's 1Password vaults."""
        vaults = await self._command.run_json(VAULTS, "vault", "list")
        return VaultList(vaults=vaults[:_MAX_VAULTS])

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_items(
        self,
        vault: Annotated[str, Field(max_length=200, description="Name or id of the vault")],
        categories: Annotated[
            list[Annotated[str, Field(max_length=50)]] | None,
            Field(max_length=22, description="Only items of these kinds, as in Login, Secure Note or SSH Key"),
        ] = None,
        page_token: Annotated[str | None, Field(max_length=100, description="next_page of the list before")] = None,
    ) -> ItemList:
        """List the items of a vault: titles, usernames and addresses, no secrets."""
        arguments = ["item", "list", f"--vault={check_name(vault, 'vault')}"]
        chosen = check_categories(categories or ())
        if chosen:
            arguments.append(f"--categories={','.join(chosen)}")
        found = await self._command.run_json(OVERVIEWS, *arguments)
        found.sort(key=lambda item: (item.title.casefold(), item.id))
        page = get_page([_make_item_line(item) for item in found], page_token, _PAGE)
        return ItemList(items=page.items, total=len(found), next_page=page.next_page)


def _make_item_line(item: OpOverview) -> ItemLine:
    # This is the user name only for logins; for other categories it is part of the content.
    username = item.additional_information if item.category.upper() == "LOGIN" else ""
    return ItemLine(
        id=item.id,
        title=item.title[:300],
        category=item.category,
        username=username[:200] or None,
        urls=[address for url in item.urls[:_MAX_URLS] if (address := redact_address(url.href))],
        tags=item.tags[:20],
    )


_MAX_FIELDS = 100
_MAX_CHARS = 500
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

    def to_text(self) -> str:
        return (
            f"{self.handle} stands for the {self.field} of {self.item}, for {self.good_for_seconds // 60} minutes. "
            "Give it as it is to a tool that takes secrets; the value itself is not shown."
        )


class RevealedSecret(Result):
    value: str = Field(repr=False)
    sites: list[str] = Field(default_factory=list, description="The only sites it is for, if its item names any")

    def to_text(self) -> str:
        return "The value is in the structured part."


class VaultItemTools:
    """`op item get` and `op read`, with handles in place of values."""

    def __init__(self, command: OpCommand, handles: SecretHandles) -> None:
        self._command, self._handles = command, handles

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def get_item(
        self,
        item: Annotated[str, Field(max_length=200, description="Title or id of the item")],
        vault: Annotated[str | None, Field(max_length=200, description="Name or id of its vault")] = None,
    ) -> ItemShown:
        """Show an item: its fields with their values, and a handle in place of each secret one."""
        arguments = ["item", "get", check_name(item, "item")]
        if vault is not None:
            arguments.append(f"--vault={check_name(vault, 'vault')}")
        found = await self._command.run_json(ITEM, *arguments)
        return self._show_item(found)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def read_secret(
        self,
        reference: Annotated[str, Field(max_length=600, description="op://vault/item/field, or …/section/field")],
    ) -> SecretShown:
        """Get a handle for one secret. Pass the handle to a tool that takes secrets, such as the browser's typing."""
        checked = check_reference(reference)
        vault, name, *_, label = checked.removeprefix("op://").partition("?")[0].split("/")
        arguments = ["item", "get", check_name(name, "reference"), f"--vault={check_name(vault, 'reference')}"]
        item = await self._command.run_json(ITEM, *arguments)
        value = await self._command.run_text("read", "--no-newline", checked)
        if not value:
            raise NotFound("This field is empty.")
        again = checked if checked.endswith((_ONE_TIME, "?attribute=totp")) else None
        secret = HeldSecret(item.title, label, None if again else value, again, _sites(item))
        return SecretShown(
            handle=self._handles.issue(secret, _current_holder()),
            item=secret.item,
            field=secret.label,
            urls=list(secret.sites),
            good_for_seconds=int(self._handles.seconds),
        )

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True, audience="hub")
    async def reveal(self, handle: Annotated[str, Field(max_length=100, description="A handle")]) -> RevealedSecret:
        """Give the hub the value a handle stands for, on its way to a tool that takes secrets."""
        if current_call().caller != "hub":
            raise NotAllowed("Only the hub may see a secret.")
        secret = self._handles.resolve(handle, _current_holder())
        value = secret.value or ""
        if secret.reference is not None:
            value = await self._command.run_text("read", "--no-newline", secret.reference)
        return RevealedSecret(value=value, sites=list(secret.sites))

    def _show_item(self, item: OpItem) -> ItemShown:
        concealed = {index: field for index, field in enumerate(item.fields) if is_secret_field(field, item.category)}
        handles = {index: self._issue_handle(item, field) for index, field in concealed.items() if field.value}
        values = {field.value: handles[index] for index, field in concealed.items() if field.value}

        def mask_secrets(text: str) -> str:
            """Replace secrets in visible text, such as a password in a title, with their handles."""
            for value, handle in values.items():
                if len(value) >= _SHORTEST_HIDDEN or text == value:
                    text = text.replace(value, handle)
            return text[:_MAX_CHARS]

        fields = [
            FieldShown(
                label=mask_secrets(field.name),
                section=(mask_secrets(field.section.label) or None) if field.section else None,
                type=field.type,
                value=None if index in concealed or field.value is None else mask_secrets(_visible_value(field)),
                handle=handles.get(index),
            )
            for index, field in enumerate(item.fields[:_MAX_FIELDS])
        ]
        return ItemShown(
            id=item.id,
            title=mask_secrets(item.title),
            category=item.category,
            vault=item.vault.name if item.vault else None,
            urls=[mask_secrets(address) for address in _sites(item)],
            tags=[mask_secrets(tag) for tag in item.tags[:20]],
            files=[mask_secrets(file.name) for file in item.files[:20]],
            fields=fields,
        )

    def _issue_handle(self, item: OpItem, field: OpField) -> str:
        again = None
        if field.type == "OTP" and item.vault is not None:
            again = f"op://{item.vault.id}/{item.id}/{field.id}{_ONE_TIME}"
        secret = HeldSecret(item.title, field.name, None if again else field.value, again, _sites(item))
        return self._handles.issue(secret, _current_holder())


def _visible_value(field: OpField) -> str:
    value = field.value or ""
    return redact_address(value) if field.type == "URL" else value


def _sites(item: OpItem) -> tuple[str, ...]:
    return tuple(address for url in item.urls if (address := redact_address(url.href)))


def _current_holder() -> HandleHolder:
    call = current_call()
    return HandleHolder(call.agent_id, call.user_id)
