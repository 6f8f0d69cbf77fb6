"""Tools that send files of the workspace and fetch files of messages into it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from annabelle.servers.kit import Result, current_call, tool
from annabelle.servers.kit.files.workspace import Workspace
from annabelle.servers.telegram.api import OutgoingFile
from annabelle.servers.telegram.arguments import ChatId, MessageId
from annabelle.servers.telegram.line import Line

MAX_BYTES = 50_000_000
MAX_CAPTION_CHARS = 1024


class MediaSent(Result):
    chat_id: str
    message_id: int
    path: str
    size: int

    def text(self) -> str:
        return f"Sent {self.path} ({self.size} bytes) as message {self.message_id}."


class MediaKept(Result):
    path: str
    size: int

    def text(self) -> str:
        return f"Saved as {self.path} ({self.size} bytes)."


class MediaTools:
    """send_media and download_media."""

    def __init__(self, line: Line, workspace: Workspace) -> None:
        self._line, self._workspace = line, workspace

    @tool(read_only=False, destructive=True, idempotent=False, open_world=True)
    async def send_media(
        self,
        chat_id: ChatId,
        file_path: Annotated[
            str, Field(min_length=1, max_length=4096, description="File in the workspace or in a granted folder")
        ],
        caption: Annotated[str | None, Field(max_length=MAX_CAPTION_CHARS, description="Text under the file")] = None,
    ) -> MediaSent:
        """Send a file: a picture, a video, a document. At most 50 MB."""
        content = await self._workspace.read(file_path, MAX_BYTES, field="file_path")
        file = OutgoingFile(content.path.rsplit("/", 1)[-1], content.data, caption or "")
        async with self._line.open() as api:
            message_id = await api.send_file(chat_id, file, current_call().progress)
        return MediaSent(chat_id=chat_id, message_id=message_id, path=content.path, size=len(content.data))

    @tool(read_only=False, destructive=False, idempotent=False, open_world=True)
    async def download_media(
        self,
        chat_id: ChatId,
        message_id: MessageId,
        output_path: Annotated[
            str,
            Field(
                min_length=1,
                max_length=4096,
                description="Where in the workspace to save it; a folder, written with / at its end, keeps its name",
            ),
        ],
    ) -> MediaKept:
        """Save the file of a message in the workspace. A file that is there is never replaced. At most 50 MB."""
        async with self._line.open() as api:
            found = await api.download(chat_id, message_id, MAX_BYTES, current_call().progress)
        if output_path.endswith("/"):
            kept = await self._workspace.keep(output_path.rstrip("/") or "/", found.name, found.data)
        else:
            kept = await self._workspace.write(output_path, found.data, field="output_path")
        return MediaKept(path=kept.path, size=kept.size)
