"""Every server that comes with Annabelle, built in this process on a home of its own."""

from __future__ import annotations

import importlib
import tomllib
from pathlib import Path
from typing import Any

import annabelle
from annabelle.servers.kit import ToolServer
from support.few_servers import FOLDERS, NAMES

SERVERS = Path(annabelle.__file__).parent / "servers"


def manifest(name: str) -> dict[str, Any]:
    return tomllib.loads((SERVERS / FOLDERS[name] / "manifest.toml").read_text())


def package_of(name: str) -> str:
    return f"annabelle.servers.{FOLDERS[name]}"


def build(name: str) -> ToolServer:
    """As its process does it: from the environment alone."""
    return importlib.import_module(f"{package_of(name)}.server").build()


__all__ = ["NAMES", "build", "manifest", "package_of"]
