"""The words rules are made of: what is done, to what kind of thing, and which tools and classes that means."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.resources import files
from typing import Final, Literal, TypeVar, cast, get_args

from annabelle.core.trust import ToolClass

Deed = Literal["delete", "send", "write", "change", "run", "pay", "book", "read", "download", "remember", "act"]
Thing = Literal[
    "mail", "event", "file", "note", "todo", "contact", "chat", "memory", "code", "money", "travel", "page", "settings"
]

ACTING: Final[tuple[ToolClass, ...]] = ("write_inside", "send_outside", "destroy", "execute", "control")

K = TypeVar("K", bound=str)
_WORDS: Final = tomllib.loads(files("annabelle.policy.rules").joinpath("words.toml").read_text(encoding="utf-8"))


def _patterns(section: str, names: tuple[K, ...]) -> Mapping[K, re.Pattern[str]]:
    forms = cast("dict[str, list[str]]", _WORDS[section])
    return {name: re.compile(rf"\b(?:{'|'.join(forms[name])})\b", re.IGNORECASE) for name in names}


def _small(name: str) -> frozenset[str]:
    return frozenset(cast("dict[str, str]", _WORDS["small"])[name].split())


_TOOLS: Final = cast("dict[str, list[str]]", _WORDS["tools"])
DEEDS: Final[Mapping[Deed, re.Pattern[str]]] = _patterns("deeds", cast("tuple[Deed, ...]", get_args(Deed)))
THINGS: Final[Mapping[Thing, re.Pattern[str]]] = _patterns("things", cast("tuple[Thing, ...]", get_args(Thing)))
TOOLS: Final[Mapping[Thing, tuple[str, ...]]] = {
    thing: tuple(_TOOLS[thing]) for thing in cast("tuple[Thing, ...]", get_args(Thing))
}
PAYING: Final = tuple(_TOOLS["paying"])
BOOKING: Final = (*PAYING, *_TOOLS["booking"])
EVERYTHING: Final = _small("everything")
FILLERS: Final = _small("fillers") | EVERYTHING
LEADING_TO_A_NAME: Final = _small("leading")
CONDITIONS: Final = _small("conditions")
NOT_A_NAME: Final = _small("nobody")
AFTER_WHICH_NAMES_BEND: Final = _small("bending")
POLISH_CASES: Final = tuple(sorted(_small("endings")))

CLASSES: Final[Mapping[Deed, tuple[ToolClass, ...]]] = {
    "delete": ("destroy",),
    "send": ("send_outside",),
    "write": ("write_inside", "destroy", "send_outside"),
    "change": ("write_inside", "destroy"),
    "run": ("execute",),
    "pay": ("send_outside",),
    "book": ("send_outside", "write_inside"),
    "read": (),
    "download": ("write_inside", "execute"),
    "remember": ("write_inside", "control"),
    "act": ACTING,
}
SAYING: Final[Mapping[Deed, str]] = {
    "delete": "deletes",
    "send": "sends out",
    "write": "writes or sends",
    "change": "changes or deletes",
    "run": "runs",
    "pay": "spends",
    "book": "books",
    "read": "opens",
    "download": "downloads",
    "remember": "remembers",
    "act": "does something",
}
CALLED: Final[Mapping[Thing, str]] = {
    "mail": "mail",
    "event": "events",
    "file": "files",
    "note": "notes",
    "todo": "to-dos",
    "contact": "contacts",
    "chat": "messages",
    "memory": "memories",
    "code": "code",
    "money": "money",
    "travel": "a journey or a table",
    "page": "pages",
    "settings": "settings",
}
