"""Files of the workspace: those that come with a message, and those that are offered for download."""

from __future__ import annotations

import asyncio
from typing import Annotated, Final

from fastapi import Query, Request
from pydantic import Field
from starlette.responses import FileResponse

from annabelle.core.errors import NotFound, RetryByModel, StorageTrouble, explain_os_error
from annabelle.core.home import write_atomically
from annabelle.core.ids import new_id
from annabelle.core.messages import now
from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, Responses, TheHub, document
from annabelle.hub.conversations.received_files import make_received_name, mention_file

router = ApiRouter("files")
FileName = Annotated[str, Query(min_length=1, max_length=200, pattern=r"\S", examples=["photo.jpg"])]
FilePath = Annotated[str, Query(min_length=1, max_length=1000, examples=["received/photo.jpg"])]
_BINARY: Final = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
_FILE: Responses = {200: {"description": "The file", "content": _BINARY}}


class UploadedFile(ApiAnswer):
    path: str = Field(description="Within the workspace")
    mention: str = Field(description="What a message says, so that the agent knows of the file")
    size: int


@router.post("/files", **document("Put a file into the workspace"))
async def add_file(hub: TheHub, request: Request, name: FileName) -> UploadedFile:
    """The body is the file, up to 20 MB. A message that has `mention` in it hands the file to an agent."""
    content = await request.body()
    path = make_received_name(name, now(), new_id("file"))
    target = hub.base.workspace / path
    with explain_os_error(StorageTrouble, f"{path} cannot be written", hint="Free space in the workspace."):
        await asyncio.to_thread(write_atomically, target, content)
    return UploadedFile(path=path, mention=mention_file(path), size=len(content))


@router.get("/files", response_class=FileResponse, **document("A file of the workspace", 404, more=_FILE))
async def get_file(hub: TheHub, path: FilePath) -> FileResponse:
    """To be saved, never to be shown by a browser as a page of its own."""
    try:
        found = await asyncio.to_thread(hub.base.find_file, path)
    except RetryByModel as refused:
        raise NotFound(refused.message) from refused
    headers = {
        "Content-Security-Policy": "sandbox; default-src 'none'",
        "X-Content-Type-Options": "nosniff",
        "Cache-Control": "no-store",
    }
    return FileResponse(found, media_type="application/octet-stream", filename=found.name, headers=headers)
