"""The environment and command line of a new process, passed through a descriptor that only the process reads."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import dataclass
from typing import cast


@dataclass(frozen=True, slots=True)
class ChildConfig:
    """The exact environment, and for an external server its command line, which may hold secrets too."""

    environment: dict[str, str]
    argv: tuple[str, ...] = ()
    folder: str = "/"


def write_config(config: ChildConfig) -> int:
    """Returns a descriptor positioned at the start of the config. The caller closes it."""
    blob = json.dumps({"environment": config.environment, "argv": config.argv, "folder": config.folder}).encode()
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("config", os.MFD_CLOEXEC)
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(blob)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def read_config(descriptor: int) -> ChildConfig:
    """Read and close."""
    with os.fdopen(descriptor, "rb") as file:
        raw = cast("dict[str, object]", json.loads(file.read()))
    environment = cast("dict[str, str]", raw["environment"])
    return ChildConfig(environment, tuple(cast("list[str]", raw["argv"])), cast("str", raw["folder"]))
