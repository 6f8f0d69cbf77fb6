"""Keeps what stands in password fields out of snapshots: the browser's own tree shows it."""

from __future__ import annotations

import json
import re
from typing import cast

from annabelle.core.errors import AnnabelleError
from annabelle.core.redact import MASK
from annabelle.servers.web.tab import Tab

_VALUE = re.compile(r"^(?P<head>\s*- .*?(?:\]'?|text|textbox)): (?P<value>.+)$")
_VALUES = "fields => fields.map(field => field.value)"
_MAX_FRAMES = 20
_SHORT = 4


async def mask_passwords(tab: Tab, tree: str) -> str:
    """The tree without what was typed into password fields."""
    secrets: set[str] = set()
    for frame in tab.page.frames[:_MAX_FRAMES]:
        try:
            found = await tab.perform("Reading", frame.eval_on_selector_all("input[type=password]", _VALUES))
        except AnnabelleError:
            continue  # a frame that went away between two looks
        secrets |= {str(value) for value in cast("list[object]", found) if value}
    if not secrets:
        return tree
    normal = {" ".join(secret.split()) for secret in secrets} | secrets
    return "\n".join(_masked(line, normal) for line in tree.split("\n"))


def _masked(line: str, secrets: set[str]) -> str:
    match = _VALUE.match(line)
    if match is None:
        return line
    head, value = match["head"], _plain(match["value"])
    if value in secrets and ("textbox" in head or len(value) >= _SHORT):
        return f"{head}: {MASK}"
    return line


def _plain(value: str) -> str:
    """A value of the tree without the quotes it may be in."""
    if len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return str(json.loads(value))
        except ValueError:
            return value[1:-1]
    if len(value) > 1 and value[0] == value[-1] == "'":
        return value[1:-1].replace("''", "'")
    return value
