"""Caches a server's tool list next to its bytecode, and tells when it is stale."""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import platform
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pydantic
import pydantic_core
from pydantic import BaseModel, ConfigDict

from annabelle.core.tools import JsonObject
from annabelle.servers.kit.server import ToolServer

SourceStamp = tuple[str, int, int]
"""A file, its size, and when it was last changed, in nanoseconds."""

_OURS = ("annabelle", "mcp_types")
_DOUBT_NS = 1_000_000_000

# What was changed later than this may have been loaded as it was before. A second for what was loaded before this line.
_LOADED_BEFORE = time.time_ns() - _DOUBT_NS


def loaded_sources(package: str) -> list[SourceStamp] | None:
    """Everything of ours, and of the package's own root, that is loaded; None when it may not be what is on disk."""
    roots = {*_OURS, package.partition(".")[0]}
    modules = [module for name, module in list(sys.modules.items()) if name.partition(".")[0] in roots]
    files = {file for file in (getattr(module, "__file__", None) for module in modules) if isinstance(file, str)}
    try:
        stamps = [_read_stamp(file) for file in sorted(files)]
    except OSError:
        return None  # not files, or gone
    return None if any(changed > _LOADED_BEFORE for _, _, changed in stamps) else stamps


def is_unchanged(stamps: Iterable[SourceStamp]) -> bool:
    try:
        return all(_read_stamp(stamp[0]) == stamp for stamp in stamps)
    except OSError:
        return False


def _read_stamp(file: str) -> SourceStamp:
    status = os.stat(file)
    return file, status.st_size, status.st_mtime_ns


_log = logging.getLogger(__name__)
_MADE_WITH = f"2 {platform.python_implementation()} {sys.version} pydantic {pydantic.VERSION}"
"""The form of the file, and the versions of what the schemas were made with."""


class _CacheHead(BaseModel):
    """The first line of the file. What follows it is the body."""

    model_config = ConfigDict(frozen=True)
    made_with: str
    sources: tuple[SourceStamp, ...]
    digest: str


class _CacheBody(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str
    instructions: str | None
    text: str


@dataclass(frozen=True, slots=True)
class ToolListing:
    """A server's name, its instructions, and its answer to `tools/list`."""

    name: str
    instructions: str | None
    text: str = field(repr=False)

    @classmethod
    def from_server(cls, server: ToolServer) -> ToolListing:
        return cls(
            server.name, server.instructions, server.list_tools().model_dump_json(by_alias=True, exclude_none=True)
        )

    def result(self) -> JsonObject:
        """Read on each call: most processes need it once, and it is large."""
        return pydantic_core.from_json(self.text)


def read_listing(package: str) -> ToolListing | None:
    """The listing of a server's package, if there is one and nothing has changed since."""
    try:
        first, _, rest = listing_file(package).read_bytes().partition(b"\n")
        head = _CacheHead.model_validate_json(first)
        if head.made_with != _MADE_WITH or head.digest != sha256(rest).hexdigest() or not is_unchanged(head.sources):
            return None
        body = _CacheBody.model_validate_json(rest)
    except (OSError, ValueError):
        return None
    return ToolListing(body.name, body.instructions, body.text)


def write_listing(package: str, server: ToolServer) -> None:
    """Store what this server lists. If it cannot be written, the next start is slower and nothing else."""
    sources = loaded_sources(package)
    if sources is None:
        return
    listing = ToolListing.from_server(server)
    body = (
        _CacheBody(name=listing.name, instructions=listing.instructions, text=listing.text).model_dump_json().encode()
    )
    head = _CacheHead(made_with=_MADE_WITH, sources=tuple(sources), digest=sha256(body).hexdigest())
    try:
        _replace_file(listing_file(package), head.model_dump_json().encode() + b"\n" + body)
    except OSError as error:
        _log.debug("the listing of %s is not kept: %s", server.name, error.strerror)


def listing_file(package: str) -> Path:
    """In the folder of the package's bytecode, and one for each version of Python, as bytecode is."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise OSError(f"{package} has no file")
    bytecode = Path(importlib.util.cache_from_source(spec.origin))
    return bytecode.with_name(bytecode.name.replace("__init__", "listing")).with_suffix(".json")


def _replace_file(file: Path, blob: bytes) -> None:
    """Write atomically. Of two writers, the later one wins."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_bytes(blob)
        part.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
