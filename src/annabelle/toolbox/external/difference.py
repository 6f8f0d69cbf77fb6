"""What has changed in a server since it was accepted, for a person to read; nothing in it can hide (EXT-06)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import cast

from annabelle.core.tools import JsonObject
from annabelle.core.visible import visible
from annabelle.toolbox.external.likeness import Likeness

_INDENT = "  "


@dataclass(frozen=True, slots=True)
class Difference:
    """What is not as it was. That something is gone alone harms nobody."""

    renamed: bool = False
    other_version: bool = False
    other_instructions: bool = False
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any((self.renamed, self.other_version, self.other_instructions, self.changed, self.added))

    def sentence(self) -> str:
        """In our words alone: it stands in the status, which models read, and names are the server's words."""
        said = (
            (self.renamed, "another name"),
            (self.other_version, "another version"),
            (self.other_instructions, "other instructions"),
            (self.changed, f"{len(self.changed)} changed"),
            (self.added, f"{len(self.added)} new"),
        )
        return ", ".join(text for so, text in said if so)


def difference(before: Likeness, after: Likeness) -> Difference:
    """What makes `after` another server than the one that was accepted."""
    shelves = (
        ("tool", before.tools, after.tools),
        ("prompt", before.prompts, after.prompts),
        ("resource", before.resources, after.resources),
    )
    return Difference(
        before.name != after.name,
        before.version != after.version,
        before.instructions != after.instructions,
        tuple(f"{kind} {name}" for kind, old, new in shelves for name in new if new[name] != old.get(name, new[name])),
        tuple(f"{kind} {name}" for kind, old, new in shelves for name in new if name not in old),
    )


def unified(before: Iterable[str], after: Iterable[str]) -> str:
    """A unified diff of lines, from what was accepted to what is there."""
    return "\n".join(difflib.unified_diff(list(before), list(after), "accepted", "now", n=2, lineterm=""))


def readable(server: Likeness | None) -> list[str]:
    """A server as lines: who it is, then each tool, prompt and resource with all it says."""
    if server is None:
        return []
    lines = [f"server {visible(server.name)}, version {visible(server.version)}"]
    lines += [
        f"{_INDENT}instructions: {visible(line)}" for line in server.instructions.split("\n") if server.instructions
    ]
    for kind, shelf in (("tool", server.tools), ("prompt", server.prompts), ("resource", server.resources)):
        for name, text in shelf.items():
            lines.append(f"{kind} {visible(name)}")
            lines += _told(cast("object", json.loads(text)), _INDENT)
    return lines


def _told(value: object, indent: str) -> Iterator[str]:
    """Nested data as indented lines, each text on its own lines: a diff then shows the words that changed."""
    if isinstance(value, dict):
        for key, item in sorted(cast("JsonObject", value).items()):
            yield from _under(f"{indent}{visible(key)}:", item, indent)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _under(f"{indent}-", item, indent)


def _under(head: str, item: object, indent: str) -> Iterator[str]:
    if isinstance(item, dict | list) and item:
        yield head
        yield from _told(cast("object", item), indent + _INDENT)
    elif isinstance(item, str):
        first, *more = item.split("\n")
        yield f"{head} {visible(first)}"
        yield from (f"{indent}{_INDENT}{visible(line)}" for line in more)
    else:
        yield f"{head} {json.dumps(item)}"
