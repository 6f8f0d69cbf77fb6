"""The worst each tool can do and what its arguments mean: reviewed for our tools, guessed for others."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Final, cast

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.core.trust import Source, ToolClass
from annabelle.policy.intent.action_kinds import ActionKind


@dataclass(frozen=True, slots=True)
class ToolTraits:
    """What policy knows of one tool and its relevant arguments; see reviewed.toml."""

    classes: tuple[ToolClass, ...] = ()
    source: Source = "external"
    private: bool = False
    trusted: bool = False
    """Its results are Annabelle's own, such as the time or a sum."""
    wants: tuple[ActionKind, ...] = ()
    enough: tuple[ActionKind, ...] = ()
    about: tuple[str, ...] = ()
    noun_is_enough: bool = False
    to: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    urls: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()
    code: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    payload: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()
    typed: tuple[str, ...] = ()
    everyone: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    existing: bool = False
    within: tuple[str, ...] = ()
    spreads: bool = False
    keeps: bool = False
    rewrites: tuple[str, ...] = ()
    adds: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    given: Mapping[str, tuple[ToolClass, ...]] = field(default_factory=dict[str, tuple[ToolClass, ...]])
    harmless: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    ruinous: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    standing: tuple[str, ...] = ()
    known: bool = True
    """Reviewed by us, rather than guessed from its server's description."""

    def classes_of(self, arguments: JsonObject) -> tuple[ToolClass, ...]:
        """The worst this call can do."""
        if any(arguments.get(name) in looks for name, looks in self.harmless.items()):
            return ("read_untrusted",)
        more: list[ToolClass] = [
            found for name, classes in self.given.items() if arguments.get(name) for found in classes
        ]
        if any(worst in str(arguments.get(name)).upper() for name, values in self.ruinous.items() for worst in values):
            more.append("destroy")
        every: dict[ToolClass, None] = dict.fromkeys((*self.classes, *more))
        return tuple(every)


HUB: Final = "hub"
READING: Final = frozenset({"read_private", "read_untrusted"})
_SHARED: Final = ("source", "private", "trusted")


@cache
def reviewed_tools() -> Mapping[str, ToolTraits]:
    """The reviewed traits by exposed tool name, for our own servers only."""
    text = files(__package__ or __name__).joinpath("reviewed.toml").read_text(encoding="utf-8")
    table: dict[str, ToolTraits] = {}
    for server, section in cast("dict[str, JsonObject]", tomllib.loads(text)).items():
        shared = {name: section[name] for name in _SHARED if name in section}
        read = _build_traits(shared | {"classes": _read_classes(shared)})
        own = ToolTraits(source="own", trusted=True)
        for names, traits in ((section.get("reads"), read), (section.get("owns"), own)):
            table |= {_exposed_name(server, name): traits for name in cast("list[str]", names or [])}
        for name, entry in section.items():
            if isinstance(entry, dict):
                table[_exposed_name(server, name)] = _build_traits(shared | cast("JsonObject", entry))
    return MappingProxyType(table)


def _build_traits(entry: JsonObject) -> ToolTraits:
    known = {"given" if name == "with" else name: _freeze(value) for name, value in entry.items()}
    return ToolTraits(**cast("dict[str, Any]", known))


def _freeze(value: object) -> object:
    if isinstance(value, list):
        return tuple(cast("list[object]", value))
    if isinstance(value, dict):
        return {name: _freeze(one) for name, one in cast("JsonObject", value).items()}
    return value


def _exposed_name(server: str, tool: str) -> str:
    return tool if server == HUB else f"{server}_{tool}"


def _read_classes(shared: JsonObject) -> list[ToolClass]:
    if shared.get("trusted"):
        return ["read_private"] if shared.get("private") else []
    return ["read_private", "read_untrusted"] if shared.get("private") else ["read_untrusted"]


def _word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NAME_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SENDING: Final = _word_set(
    "send post share publish reply forward invite notify submit pay buy order purchase transfer tweet message mail "
    "email upload push book donate checkout call dial comment withdraw deposit"
)
_DESTROYING: Final = _word_set(
    "delete remove purge clear drop erase trash cancel destroy reset wipe revoke kill terminate uninstall disable "
    "close unsubscribe overwrite"
)
_RUNNING: Final = _word_set("run execute exec eval shell command script bash terminal install deploy")
_RULING: Final = _word_set(
    "grant permission permissions config configure setting settings schedule cron webhook rule rules filter filters "
    "persona profile admin role roles token tokens password credential credentials key keys"
)
_TO: Final = re.compile(
    r"(?:^|_)(?:to|cc|bcc|recipients?|emails?|addresse?e?s?|attendees?|invitees?|participants?|chat(?:_?ids?)?|channels?|"
    r"users?(?:_?(?:ids?|names?))?|phones?(?:_?numbers?)?|numbers?|contacts?|accounts?(?:_?(?:ids?|numbers?))?|payees?|"
    r"iban|wallet|members?|assignees?|reviewers?|hosts?|domain|webhook)$"
)
_URL: Final = re.compile(r"(?:^|_)(?:urls?|links?|uri|endpoint|website)$")
_PATH: Final = re.compile(
    r"(?:^|_)(?:paths?|files?|file_?names?|folders?|director(?:y|ies)|attachments?|source|target)$"
)
_PAYLOAD: Final = re.compile(
    r"(?:^|_)(?:body|text|content|message|subject|title|description|comment|caption|note|summary|html|markdown|payload)$"
)
_CODE: Final = re.compile(r"(?:^|_)(?:code|commands?|cmd|script|sql|expression|program)$")


def guess_traits(tool: ToolSpec) -> ToolTraits:
    """Guess what an unreviewed tool may do. Without hints assume the worst; even a read-only tool may leak words."""
    hints = tool.annotations
    words = {word.lower() for word in _NAME_WORD.findall(tool.original_name)}
    names = tuple(cast("JsonObject", tool.input_schema.get("properties") or {}))
    urls = tuple(name for name in names if _URL.search(_to_snake_case(name)))
    if hints.read_only and not words & (_SENDING | _DESTROYING | _RUNNING):
        rest = tuple(name for name in names if name not in urls)
        return ToolTraits(classes=("read_untrusted",), urls=urls, queries=rest, known=False)
    classes: list[ToolClass] = []
    if hints.open_world or words & _SENDING:
        classes.append("send_outside")
    if hints.destructive or words & _DESTROYING:
        classes.append("destroy")
    if words & _RUNNING:
        classes.append("execute")
    if words & _RULING:
        classes.append("control")
    roles = {name: _to_snake_case(name) for name in names}
    code = tuple(name for name, role in roles.items() if _CODE.search(role))
    payload = tuple(name for name, role in roles.items() if _PAYLOAD.search(role) and name not in code)
    to = tuple(name for name, role in roles.items() if _TO.search(role) and name not in payload)
    paths = tuple(name for name, role in roles.items() if _PATH.search(role) and name not in to)
    known = {*urls, *code, *payload, *to, *paths}
    return ToolTraits(
        classes=tuple(classes) or ("write_inside",),
        wants=_guess_wanted_kinds(words),
        to=to,
        files=paths,
        urls=urls,
        code=code,
        payload=payload,
        of=tuple(name for name in names if name not in known),
        known=False,
    )


def _to_snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")


def _guess_wanted_kinds(words: set[str]) -> tuple[ActionKind, ...]:
    """The kinds of orders that fit the verbs in a tool's name."""
    fitting: dict[ActionKind, str] = {
        "send": "send post share publish reply forward invite notify submit tweet message mail email comment call push",
        "create": "create add make new write insert generate draft open put",
        "update": "update edit modify change set patch move rename replace append mark assign merge close label",
        "delete": "delete remove purge clear drop erase trash cancel destroy reset wipe revoke unsubscribe",
        "schedule": "schedule book reserve remind plan",
        "remember": "save store remember record log",
        "transfer": "download upload install export import transfer sync copy",
        "pay": "pay buy order purchase transfer donate checkout withdraw deposit",
        "run": "run execute exec eval start trigger deploy",
        "control": "turn switch enable disable set start stop toggle configure grant subscribe follow",
    }
    return tuple(kind for kind, verbs in fitting.items() if words & set(verbs.split()))
