"""Most tests of the hub need two of its servers. The others stay off there: each costs every start its share."""

from __future__ import annotations

import tomllib
from pathlib import Path

import annabelle

USUAL = ("filer", "memory")
_FOLDERS = Path(annabelle.__file__).parent / "servers"
FOLDERS = {tomllib.loads(file.read_text())["name"]: file.parent.name for file in _FOLDERS.glob("*/manifest.toml")}
"""Every server that comes with Annabelle, by the name in its manifest, with its folder."""
NAMES = tuple(sorted(FOLDERS))


def only(*names: str) -> dict[str, str]:
    """Settings that switch all servers off but these. Without the guardian nothing is scanned."""
    return {f"{name.upper()}_MCP_ENABLED": "true" if name in names else "false" for name in NAMES}


FEW_SERVERS = {name: value for name, value in only(*USUAL).items() if value == "false"}
EVERY_SERVER = only(*NAMES)
