"""Fetches a GGUF model: resumed where it broke off, checked by SHA-256, and in place only when it is whole."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO

import httpx

from annabelle.core.errors import (
    ConfigMistake,
    ProviderDown,
    ProviderFailed,
    ProviderRefused,
    StorageTrouble,
)
from annabelle.llm.registry import GgufModel, Registry

Progress = Callable[[int, int | None], None]
"""Called with the bytes that are there and, where known, the bytes there will be."""

_PIECE = 1 << 16  # what a broken download loses at most
_SPARE_BYTES = 50_000_000
_TIMEOUT = httpx.Timeout(30, connect=10)


async def pull(registry: Registry, model: GgufModel, progress: Progress | None = None) -> Path:
    """Fetch a model and return its file. What is already there and right is not fetched again.

    A broken download stays beside as `.part`; the next pull goes on from there if the server allows it.
    """
    target = registry.file_of(model)
    tell = progress or _silent
    async with httpx.AsyncClient(follow_redirects=True, timeout=_TIMEOUT) as client:
        model = await _pinned(client, registry, model)
        if _size(target):
            if await asyncio.to_thread(_digest, target) == model.sha256:
                return target
            _remove(target)
        part = target.with_name(f"{target.name}.part")
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            await _fetch(client, model, part, tell)
            await _check(model, part)
            part.replace(target)
        except OSError as error:
            raise _storage_trouble(error, part) from error
    return target


def _silent(done: int, total: int | None) -> None:
    """Progress nobody watches."""


async def _pinned(client: httpx.AsyncClient, registry: Registry, model: GgufModel) -> GgufModel:
    """The model with a checksum. One without gets the digest its publisher states, from now on and for good."""
    if model.sha256 is not None:
        return model
    try:
        response = await client.head(model.url, follow_redirects=False)
    except httpx.HTTPError as error:
        raise _unreachable(model, error) from error
    stated = response.headers.get("x-linked-etag", "").strip('W/"').lower()
    size = response.headers.get("x-linked-size", "")
    if len(stated) != 64 or not set(stated) <= set("0123456789abcdef"):
        raise ConfigMistake(
            f"No SHA-256 is known for {model.name}, and its server states none.",
            hint="Give its sha256 with the address; a model that can not be checked is not fetched.",
            field="sha256",
        )
    pinned = model.model_copy(update={"sha256": stated, "size": int(size) if size.isdigit() else model.size})
    registry.remember(pinned)
    return pinned


async def _fetch(client: httpx.AsyncClient, model: GgufModel, part: Path, tell: Progress) -> None:
    have = _size(part)
    if model.size is not None:
        if have == model.size:
            return
        if have > model.size:
            have = 0
        free = shutil.disk_usage(part.parent).free
        if free < model.size - have + _SPARE_BYTES:
            raise StorageTrouble(
                f"{model.name} needs {(model.size - have) / 1e6:.0f} MB, and {free / 1e6:.0f} MB are free.",
                hint=f"Free some space on the disk of {part.parent}.",
            )
    async with _opened(client, model, have) as response:
        resumed = response.status_code == 206
        done = have if resumed else 0
        length = response.headers.get("content-length", "")
        total = model.size or (done + int(length) if length.isdigit() else None)
        with part.open("ab" if resumed else "wb") as file:
            tell(done, total)
            async for piece in _pieces(response, model):
                await asyncio.to_thread(file.write, piece)
                done += len(piece)
                tell(done, total)
            await asyncio.to_thread(_to_disk, file)


@asynccontextmanager
async def _opened(client: httpx.AsyncClient, model: GgufModel, have: int) -> AsyncGenerator[httpx.Response]:
    headers = {"range": f"bytes={have}-"} if have else {}
    try:
        async with client.stream("GET", model.url, headers=headers) as response:
            if response.status_code in (200, 206):
                yield response
                return
            status = response.status_code
    except httpx.HTTPError as error:
        raise _unreachable(model, error) from error
    if status == 416 and have:  # the part is longer than the file: begin again
        async with _opened(client, model, 0) as response:
            yield response
        return
    if status >= 500 or status == 429:
        raise ProviderDown(f"The server of {model.name} answered with status {status}.", hint="Try again later.")
    raise ProviderRefused(
        f"The server of {model.name} answered with status {status}.", hint=f"Check its address: {model.url}"
    )


async def _pieces(response: httpx.Response, model: GgufModel) -> AsyncIterator[bytes]:
    try:
        async for piece in response.aiter_bytes(_PIECE):
            yield piece
    except httpx.HTTPError as error:
        raise _unreachable(model, error) from error


async def _check(model: GgufModel, part: Path) -> None:
    found = await asyncio.to_thread(_digest, part)
    if found != model.sha256:
        _remove(part)
        raise ProviderFailed(
            f"What was fetched for {model.name} is not the pinned file: its SHA-256 is {found}.",
            hint="It was removed. Pull again; if it happens twice, do not trust that server.",
        )


def _size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)


def _digest(file: Path) -> str:
    digest = hashlib.sha256()
    with file.open("rb") as data:
        while piece := data.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


def _to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _unreachable(model: GgufModel, error: httpx.HTTPError) -> ProviderDown:
    return ProviderDown(
        f"The download of {model.name} broke off ({type(error).__name__}).",
        hint="Pull again: it goes on where it stopped.",
    )


def _storage_trouble(error: OSError, part: Path) -> StorageTrouble:
    if error.errno == errno.ENOSPC:
        return StorageTrouble("The disk is full.", hint=f"Free some space on the disk of {part.parent} and pull again.")
    return StorageTrouble(f"{part.name} could not be written: {error.strerror}.", hint=f"Look at {part.parent}.")
