"""What is in the vaults: names, categories, addresses; nothing that is secret."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, Field

from annabelle.servers.kit import Result, tool
from annabelle.servers.kit.paging import page_of
from annabelle.servers.onepassword.command import OpCommand
from annabelle.servers.onepassword.concealing import shown_address
from annabelle.servers.onepassword.items import OVERVIEWS, VAULTS, OpOverview
from annabelle.servers.onepassword.names import checked_categories, checked_name

_PAGE = 50
_MOST_VAULTS = 200
_MOST_URLS = 5


class Vault(BaseModel):
    id: str
    name: str
    items: int | None = Field(default=None, description="How many items it holds, where 1Password says so")


class VaultList(Result):
    vaults: list[Vault]


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


class Browsing:
    """Lists, as `op vault list` and `op item list` give them."""

    def __init__(self, command: OpCommand) -> None:
        self._command = command

    @tool(read_only=True, destructive=False, idempotent=True, open_world=True)
    async def list_vaults(self) -> VaultList:
        """List the user's 1Password vaults."""
        vaults = await self._command.json(VAULTS, "vault", "list")
        return VaultList(vaults=[Vault(id=v.id, name=v.name, items=v.items) for v in vaults[:_MOST_VAULTS]])

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
        arguments = ["item", "list", f"--vault={checked_name(vault, 'vault')}"]
        chosen = checked_categories(categories or ())
        if chosen:
            arguments.append(f"--categories={','.join(chosen)}")
        found = await self._command.json(OVERVIEWS, *arguments)
        found.sort(key=lambda item: (item.title.casefold(), item.id))
        page = page_of([_line(item) for item in found], page_token, _PAGE)
        return ItemList(items=page.items, total=len(found), next_page=page.next_page)


def _line(item: OpOverview) -> ItemLine:
    # Only of a login this is the username; of other kinds it is a piece of what they keep.
    username = item.additional_information if item.category.upper() == "LOGIN" else ""
    return ItemLine(
        id=item.id,
        title=item.title[:300],
        category=item.category,
        username=username[:200] or None,
        urls=[address for url in item.urls[:_MOST_URLS] if (address := shown_address(url.href))],
        tags=item.tags[:20],
    )
