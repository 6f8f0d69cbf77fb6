"""Files on their way to and from Telegram, piece by piece, with word of how far they are."""

from __future__ import annotations

import asyncio
import io

from annabelle.core.errors import TooLarge
from annabelle.servers.telegram.api import OutgoingFile
from annabelle.servers.telegram.models import Download, Progress
from annabelle.servers.telegram.mtproto.shapes import Client, Message

TRANSFER_SECONDS = 280.0


async def send(client: Client, peer: object, file: OutgoingFile, progress: Progress) -> int:
    """Upload a file and send it; the id of the message."""
    stream = io.BytesIO(file.data)
    stream.name = file.name

    async def step(done: int, total: int) -> None:
        await progress(done, total, f"{done} of {total} bytes sent")

    async with asyncio.timeout(TRANSFER_SECONDS):
        sent = await client.send_file(
            peer, stream, caption=file.caption, parse_mode=None, file_size=len(file.data), progress_callback=step
        )
    return sent.id


async def fetch(client: Client, message: Message, max_bytes: int, progress: Progress) -> Download:
    """The whole file of a message; TooLarge as soon as it is known to be."""
    file = message.file
    assert file is not None
    if file.size is not None and file.size > max_bytes:
        raise TooLarge(f"The file has {file.size} bytes; at most {max_bytes} are fetched.")
    data = bytearray()
    async with asyncio.timeout(TRANSFER_SECONDS):
        async for chunk in client.iter_download(message):
            data += chunk
            if len(data) > max_bytes:
                raise TooLarge(f"The file has more than {max_bytes} bytes, which is the most that is fetched.")
            await progress(len(data), file.size, f"{len(data)} bytes fetched")
    name = file.name or f"{message.date:%Y-%m-%d}-{message.id}{file.ext or ''}"
    return Download(name, bytes(data))
