"""Results of the browser tools: text that is safe to show, and files that are kept."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field

from annabelle.core.result_text import for_model
from annabelle.core.secrets.redactor import Redactor
from annabelle.servers.kit import Result
from annabelle.servers.kit.files.atomic_write import make_stamp
from annabelle.servers.kit.files.workspace import KeptFile, Workspace


class ActionResult(Result):
    """An action, and the page after it."""

    did: str
    url: str
    title: str
    dialog: str | None = Field(default=None, description="The dialog that is open now, if one is")
    news: list[str] = Field(default_factory=list, description="What else happened: tabs, downloads, errors")

    def to_text(self) -> str:
        page = f"Page: {self.title or 'without a title'} ({self.url})"
        dialog = [] if self.dialog is None else [f"{self.dialog}{for_model(' Answer it with browser_handle_dialog.')}"]
        return "\n".join([self.did, page, *dialog, *self.news])


class SavedPage(Result):
    """Something that was kept as a file of the workspace."""

    path: str = Field(description="Where it is, in the workspace")
    size: int = Field(description="In bytes")
    url: str
    note: str | None = None

    def to_text(self) -> str:
        return f"Saved {self.path} ({self.size} bytes) of {self.url}." + (f" {self.note}" if self.note else "")


class PageContent(Result):
    """What a page holds, as far as it fits."""

    url: str
    title: str
    content: str = ""
    total_chars: int = 0
    rest: str | None = Field(default=None, description="Where in the workspace the whole is, when this is a part")
    news: list[str] = Field(default_factory=list)

    def to_text(self) -> str:
        head = [f"Page: {self.title or 'without a title'} ({self.url})", *self.news]
        cut = f"\n[{self.total_chars} characters in all; the whole is in {self.rest}]" if self.rest else ""
        return "\n".join([*head, "", f"{self.content}{cut}"])


# Control characters except tab and line feed, direction marks, zero-width characters, surrogates, tags.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e0fff]"
)
_SPACE = re.compile(r"\s+")
_URL_CHARS = 500


def clean_text(text: str) -> str:
    return _UNSEEN.sub("", text)


def clean_line(text: str, limit: int = 300) -> str:
    """Clean text to one line of bounded length, such as a title."""
    line = _SPACE.sub(" ", _UNSEEN.sub("", text)).strip()
    return line if len(line) <= limit else f"{line[:limit]}…"


def clean_url(url: str, redact: Redactor) -> str:
    """Remove passwords and tokens from a URL, and shorten data URLs."""
    if url.startswith("data:"):
        return f"{clean_line(url, 40)}"
    parts = urlsplit(url) if "@" in url.partition("?")[0] else None
    if parts is not None and parts.hostname:
        url = url.replace(f"{parts.netloc}", parts.netloc.rpartition("@")[2], 1)
    return redact(clean_line(url, _URL_CHARS))


FileName = Annotated[
    str | None,
    Field(
        description="Save to this new file of the workspace instead of showing it; without it nothing is written",
        max_length=500,
    ),
]


async def keep_file(workspace: Workspace, filename: str | None, folder: str, ending: str, data: bytes) -> KeptFile:
    """Write a new file. A name that is taken gets a number, so nothing is replaced."""
    path = PurePosixPath((filename or f"page-{make_stamp()}").replace("\\", "/"))
    name = path.name if path.suffix else f"{path.name or 'page'}{ending}"
    chosen = str(path.parent) if str(path.parent) != "." else folder
    return await workspace.keep(chosen, name, data)
