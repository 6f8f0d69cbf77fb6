"""Fingerprints of external servers and their entries, and what changed since they were accepted (TRU-07, EXT-06)."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import cast

from pydantic import BaseModel, ConfigDict

from annabelle.core.secrets.redactor import Redactor, SecretMatcher, environment_secrets
from annabelle.core.text import escape_invisible
from annabelle.core.tools import JsonObject
from annabelle.toolbox.external.entries import ExternalEntry, find_argument_secrets
from annabelle.toolbox.mcp.connection import ServerIntroduction

_NOT_SHOWN_TO_ANYONE = ("_meta", "icons")
_NAMES_OF_A_RESOURCE = ("uri", "uriTemplate")
_OF_A_RESOURCE = ("uri", "uriTemplate", "name", "title", "description", "mimeType")


class ServerFingerprint(BaseModel):
    """A server as it introduced itself. Each tool, prompt and resource is kept as the exact JSON it was listed with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    version: str = ""
    instructions: str = ""
    tools: dict[str, str] = {}
    prompts: dict[str, str] = {}
    resources: dict[str, str] = {}

    @classmethod
    def from_introduction(cls, introduction: ServerIntroduction, tools: Iterable[JsonObject]) -> ServerFingerprint:
        resources = ({key: one[key] for key in _OF_A_RESOURCE if key in one} for one in introduction.resources)
        return cls(
            name=introduction.name,
            version=introduction.version,
            instructions=introduction.instructions,
            tools=_by_name(tools),
            prompts=_by_name(introduction.prompts),
            resources=_by_name(resources, _NAMES_OF_A_RESOURCE),
        )

    def mask(self, secrets: SecretMatcher) -> ServerFingerprint:
        """A copy without secrets: what was stored before secrets were masked may hold one."""
        resources = _mask_all(self.resources, secrets)
        return ServerFingerprint(
            name=secrets.mask(self.name),
            version=secrets.mask(self.version),
            instructions=secrets.mask(self.instructions),
            tools=_by_name(_mask_all(self.tools, secrets)),
            prompts=_by_name(_mask_all(self.prompts, secrets)),
            resources=_by_name(resources, _NAMES_OF_A_RESOURCE),
        )

    @property
    def digest(self) -> str:
        return sha256(self.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def _by_name(listed: Iterable[JsonObject], keys: tuple[str, ...] = ("name",)) -> dict[str, str]:
    """By name. A second one of the same name is kept under a name with a number, so that none is hidden."""
    found: dict[str, str] = {}
    for one in listed:
        told = next((str(one[key]) for key in keys if key in one), "")
        name, count = told, 1
        while name in found:
            count += 1
            name = f"{told} ({count})"
        found[name] = to_canonical_json({key: value for key, value in one.items() if key not in _NOT_SHOWN_TO_ANYONE})
    return dict(sorted(found.items()))


def _mask_all(kept: dict[str, str], secrets: SecretMatcher) -> list[JsonObject]:
    return [secrets.mask_object(cast("JsonObject", json.loads(text))) for text in kept.values()]


def to_canonical_json(value: object) -> str:
    """One spelling for each JSON value, in ASCII."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


class EntryFingerprint(BaseModel):
    """An entry as accepted: a hash of all that decides what runs, and lines without secrets to show."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str
    lines: tuple[str, ...]

    @classmethod
    def from_entry(cls, entry: ExternalEntry) -> EntryFingerprint:
        """Taken before variables are resolved: a renewed token is not another server.

        Header values may be renewed too, so only header names count.
        """
        facts: JsonObject = {
            "command": entry.command,
            "args": entry.args,
            "env": entry.env,
            "url": entry.url,
            "headers": sorted(entry.headers),
            "metadata": entry.metadata.model_dump(mode="json"),
            "sensitive": entry.sensitive,
        }
        if entry.trusted:  # left out otherwise, so that entries accepted before the field existed stay accepted
            facts["trusted"] = True
        return cls(digest=sha256(to_canonical_json(facts).encode()).hexdigest(), lines=tuple(_entry_lines(entry)))


def _entry_lines(entry: ExternalEntry) -> Iterable[str]:
    redact = Redactor((*environment_secrets(entry.env), *find_argument_secrets(entry.args)))
    if entry.command is not None:
        yield f"command: {redact(entry.command)}"
    yield from (f"argument: {redact(part)}" for part in entry.args)
    if entry.url is not None:
        yield f"url: {redact(entry.url.partition('?')[0])}"
        if "?" in entry.url:
            yield f"  and what follows its question mark ({_short_fingerprint(entry.url)})"
    # Any value may be a secret; its fingerprint shows a change without showing it.
    yield from (f"variable: {name} ({_short_fingerprint(value)})" for name, value in sorted(entry.env.items()))
    yield from (f"header: {name}" for name in sorted(entry.headers))
    yield f"scanned: {'what goes in' if entry.metadata.scan.input else 'not what goes in'}, " + (
        "what comes out" if entry.metadata.scan.output else "not what comes out"
    )
    if entry.sensitive:
        yield "marked as sensitive"
    if entry.trusted:
        yield "trusted to say who or what an id stands for"
    about = entry.metadata
    shown = (("label", about.label), ("group", about.group), ("keywords", " ".join(about.keywords)))
    yield from (f"{name}: {text}" for name, text in shown if text)


def _short_fingerprint(text: str) -> str:
    return f"fingerprint {sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"


_INDENT = "  "


@dataclass(frozen=True, slots=True)
class FingerprintDiff:
    """What changed. Removals are not counted: they are harmless."""

    renamed: bool = False
    other_version: bool = False
    other_instructions: bool = False
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return any((self.renamed, self.other_version, self.other_instructions, self.changed, self.added))

    def sentence(self) -> str:
        """Without names, which the server chose: models read the status."""
        said = (
            (self.renamed, "another name"),
            (self.other_version, "another version"),
            (self.other_instructions, "other instructions"),
            (self.changed, f"{len(self.changed)} changed"),
            (self.added, f"{len(self.added)} new"),
        )
        return ", ".join(text for so, text in said if so)


def diff_fingerprints(before: ServerFingerprint, after: ServerFingerprint) -> FingerprintDiff:
    """What differs from the accepted server."""
    kinds = (
        ("tool", before.tools, after.tools),
        ("prompt", before.prompts, after.prompts),
        ("resource", before.resources, after.resources),
    )
    return FingerprintDiff(
        before.name != after.name,
        before.version != after.version,
        before.instructions != after.instructions,
        tuple(f"{kind} {name}" for kind, old, new in kinds for name in new if new[name] != old.get(name, new[name])),
        tuple(f"{kind} {name}" for kind, old, new in kinds for name in new if name not in old),
    )


def format_unified_diff(before: Iterable[str], after: Iterable[str]) -> str:
    """A unified diff of lines, from what was accepted to what is there."""
    return "\n".join(difflib.unified_diff(list(before), list(after), "accepted", "now", n=2, lineterm=""))


def fingerprint_lines(server: ServerFingerprint | None) -> list[str]:
    """A server as lines: name and version, then each tool, prompt and resource in full."""
    if server is None:
        return []
    lines = [f"server {escape_invisible(server.name)}, version {escape_invisible(server.version)}"]
    lines += [
        f"{_INDENT}instructions: {escape_invisible(line)}"
        for line in server.instructions.split("\n")
        if server.instructions
    ]
    for kind, listed in (("tool", server.tools), ("prompt", server.prompts), ("resource", server.resources)):
        for name, text in listed.items():
            lines.append(f"{kind} {escape_invisible(name)}")
            lines += _nested_lines(cast("object", json.loads(text)), _INDENT)
    return lines


def _nested_lines(value: object, indent: str) -> Iterator[str]:
    """Nested data as indented lines, each text on its own lines: a diff then shows the words that changed."""
    if isinstance(value, dict):
        for key, item in sorted(cast("JsonObject", value).items()):
            yield from _item_lines(f"{indent}{escape_invisible(key)}:", item, indent)
    elif isinstance(value, list):
        for item in cast("list[object]", value):
            yield from _item_lines(f"{indent}-", item, indent)


def _item_lines(head: str, item: object, indent: str) -> Iterator[str]:
    if isinstance(item, dict | list) and item:
        yield head
        yield from _nested_lines(cast("object", item), indent + _INDENT)
    elif isinstance(item, str):
        first, *more = item.split("\n")
        yield f"{head} {escape_invisible(first)}"
        yield from (f"{indent}{_INDENT}{escape_invisible(line)}" for line in more)
    else:
        yield f"{head} {json.dumps(item)}"
