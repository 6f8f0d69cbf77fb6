"""What the tools give back."""

from __future__ import annotations

from pydantic import Field

from annabelle.servers.kit import Result


class Done(Result):
    """An action, and the page after it."""

    did: str
    url: str
    title: str
    dialog: str | None = Field(default=None, description="The dialog that is open now, if one is")
    news: list[str] = Field(default_factory=list, description="What else happened: tabs, downloads, errors")

    def text(self) -> str:
        page = f"Page: {self.title or 'without a title'} ({self.url})"
        dialog = [] if self.dialog is None else [f"{self.dialog} Answer it with browser_handle_dialog."]
        return "\n".join([self.did, page, *dialog, *self.news])


class Saved(Result):
    """Something that was kept as a file of the workspace."""

    path: str = Field(description="Where it is, in the workspace")
    size: int = Field(description="In bytes")
    url: str
    note: str | None = None

    def text(self) -> str:
        return f"Saved {self.path} ({self.size} bytes) of {self.url}." + (f" {self.note}" if self.note else "")


class Content(Result):
    """What a page holds, as far as it fits."""

    url: str
    title: str
    content: str = ""
    total_chars: int = 0
    rest: str | None = Field(default=None, description="Where in the workspace the whole is, when this is a part")
    news: list[str] = Field(default_factory=list)

    def text(self) -> str:
        head = [f"Page: {self.title or 'without a title'} ({self.url})", *self.news]
        cut = f"\n[{self.total_chars} characters in all; the whole is in {self.rest}]" if self.rest else ""
        return "\n".join([*head, "", f"{self.content}{cut}"])
