"""What a server lists, kept from when its tools were last put together, so that a start need not do it again.

It lies beside the bytecode and is trusted as far: it counts while every source it was made from is as it was then. One
that is stale, torn or edited is no listing, and where none can be written each start does the work.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import os
import platform
import sys
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

import pydantic
import pydantic_core
from pydantic import BaseModel, ConfigDict

from annabelle.core.tools import JsonObject
from annabelle.servers.kit.server import ToolServer
from annabelle.servers.kit.sources import Stamp, loaded_sources, unchanged

_log = logging.getLogger(__name__)
_MADE_WITH = f"2 {platform.python_implementation()} {sys.version} pydantic {pydantic.VERSION}"
"""The form of the file, and the versions of what the schemas were made with."""


class _Head(BaseModel):
    """The first line of the file. What follows it is the body."""

    model_config = ConfigDict(frozen=True)
    made_with: str
    sources: tuple[Stamp, ...]
    digest: str


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True)
    name: str
    instructions: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Listing:
    """A server's name, its instructions, and its answer to `tools/list`."""

    name: str
    instructions: str | None
    text: str = field(repr=False)

    @classmethod
    def of(cls, server: ToolServer) -> Listing:
        return cls(server.name, server.instructions, server.listing().model_dump_json(by_alias=True, exclude_none=True))

    def result(self) -> JsonObject:
        """Read anew each time: it is asked for once in most lives, and large."""
        return pydantic_core.from_json(self.text)


def read_listing(package: str) -> Listing | None:
    """The listing of a server's package, if there is one and nothing has changed since."""
    try:
        first, _, rest = listing_file(package).read_bytes().partition(b"\n")
        head = _Head.model_validate_json(first)
        if head.made_with != _MADE_WITH or head.digest != sha256(rest).hexdigest() or not unchanged(head.sources):
            return None
        body = _Body.model_validate_json(rest)
    except (OSError, ValueError):
        return None
    return Listing(body.name, body.instructions, body.text)


def write_listing(package: str, server: ToolServer) -> None:
    """Keep what this server lists. A place that can not be written costs the next start time, and nothing else."""
    sources = loaded_sources(package)
    if sources is None:
        return
    listing = Listing.of(server)
    body = _Body(name=listing.name, instructions=listing.instructions, text=listing.text).model_dump_json().encode()
    head = _Head(made_with=_MADE_WITH, sources=tuple(sources), digest=sha256(body).hexdigest())
    try:
        _replace(listing_file(package), head.model_dump_json().encode() + b"\n" + body)
    except OSError as error:
        _log.debug("the listing of %s is not kept: %s", server.name, error.strerror)


def listing_file(package: str) -> Path:
    """In the folder of the package's bytecode, and one for each version of Python, as bytecode is."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise OSError(f"{package} has no file")
    bytecode = Path(importlib.util.cache_from_source(spec.origin))
    return bytecode.with_name(bytecode.name.replace("__init__", "listing")).with_suffix(".json")


def _replace(file: Path, blob: bytes) -> None:
    """Whole or not at all; of two that write at once the later one stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        part.write_bytes(blob)
        part.replace(file)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise
