"""What a server is: everything it says of itself that could be turned against the person who accepted it (TRU-07)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from hashlib import sha256
from typing import cast

from pydantic import BaseModel, ConfigDict

from annabelle.core.redact import Forms, Redactor, environment_secrets
from annabelle.core.tools import JsonObject
from annabelle.toolbox.connections.connection import Introduction
from annabelle.toolbox.external.entries import Entry
from annabelle.toolbox.external.entry_secrets import argument_secrets

_NOT_SHOWN_TO_ANYONE = ("_meta", "icons")
_NAMES_OF_A_RESOURCE = ("uri", "uriTemplate")
_OF_A_RESOURCE = ("uri", "uriTemplate", "name", "title", "description", "mimeType")


class Likeness(BaseModel):
    """A server as it introduced itself. Each tool, prompt and resource is kept as the exact JSON it was listed with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = ""
    version: str = ""
    instructions: str = ""
    tools: dict[str, str] = {}
    prompts: dict[str, str] = {}
    resources: dict[str, str] = {}

    @classmethod
    def of(cls, introduction: Introduction, tools: Iterable[JsonObject]) -> Likeness:
        resources = ({key: one[key] for key in _OF_A_RESOURCE if key in one} for one in introduction.resources)
        return cls(
            name=introduction.name,
            version=introduction.version,
            instructions=introduction.instructions,
            tools=_by_name(tools),
            prompts=_by_name(introduction.prompts),
            resources=_by_name(resources, _NAMES_OF_A_RESOURCE),
        )

    def without(self, secrets: Forms) -> Likeness:
        """The same as it would be kept today: what was listed before secrets were masked may hold one."""
        resources = _masked(self.resources, secrets)
        return Likeness(
            name=secrets.masked(self.name),
            version=secrets.masked(self.version),
            instructions=secrets.masked(self.instructions),
            tools=_by_name(_masked(self.tools, secrets)),
            prompts=_by_name(_masked(self.prompts, secrets)),
            resources=_by_name(resources, _NAMES_OF_A_RESOURCE),
        )

    @property
    def digest(self) -> str:
        return sha256(self.model_dump_json().encode("utf-8", "surrogatepass")).hexdigest()


def _by_name(listed: Iterable[JsonObject], keys: tuple[str, ...] = ("name",)) -> dict[str, str]:
    """Under their names; a second one of the same name is kept beside the first, so that it can not hide behind it."""
    found: dict[str, str] = {}
    for one in listed:
        told = next((str(one[key]) for key in keys if key in one), "")
        name, count = told, 1
        while name in found:
            count += 1
            name = f"{told} ({count})"
        found[name] = canonical({key: value for key, value in one.items() if key not in _NOT_SHOWN_TO_ANYONE})
    return dict(sorted(found.items()))


def _masked(kept: dict[str, str], secrets: Forms) -> list[JsonObject]:
    return [secrets.masked_object(cast("JsonObject", json.loads(text))) for text in kept.values()]


def canonical(value: object) -> str:
    """One spelling for each JSON value. Escaped, so that no character in it can play tricks on a file."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


class EntryLikeness(BaseModel):
    """An entry as it was accepted: a hash of all that decides what runs, and lines for a person without a secret."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    digest: str
    lines: tuple[str, ...]

    @classmethod
    def of(cls, entry: Entry) -> EntryLikeness:
        """As written, before variables are put in: a token that is renewed is no other server.

        What goes with a request to an accepted address may be renewed too, so of headers only the names count.
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
        if entry.trusted:  # left out otherwise, so that entries accepted before there was such a mark stay accepted
            facts["trusted"] = True
        return cls(digest=sha256(canonical(facts).encode()).hexdigest(), lines=tuple(_lines(entry)))


def _lines(entry: Entry) -> Iterable[str]:
    redact = Redactor((*environment_secrets(entry.env), *argument_secrets(entry.args)))
    if entry.command is not None:
        yield f"command: {redact(entry.command)}"
    yield from (f"argument: {redact(part)}" for part in entry.args)
    if entry.url is not None:
        yield f"url: {redact(entry.url.partition('?')[0])}"
        if "?" in entry.url:
            yield f"  and what follows its question mark ({_short(entry.url)})"
    # A value may be a secret whatever its name is; that it changed can be seen without reading it.
    yield from (f"variable: {name} ({_short(value)})" for name, value in sorted(entry.env.items()))
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


def _short(text: str) -> str:
    return f"fingerprint {sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:8]}"
