"""What a tool that nobody reviewed may do, read from its name, its hints and the names of its arguments."""

from __future__ import annotations

import re
from typing import Final, cast

from annabelle.core.tools import JsonObject, ToolSpec
from annabelle.core.trust import ToolClass
from annabelle.policy.intent.kinds import ActionKind
from annabelle.policy.tools.traits import Traits


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_NAME_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_SENDING: Final = _set(
    "send post share publish reply forward invite notify submit pay buy order purchase transfer tweet message mail "
    "email upload push book donate checkout call dial comment withdraw deposit"
)
_DESTROYING: Final = _set(
    "delete remove purge clear drop erase trash cancel destroy reset wipe revoke kill terminate uninstall disable "
    "close unsubscribe overwrite"
)
_RUNNING: Final = _set("run execute exec eval shell command script bash terminal install deploy")
_RULING: Final = _set(
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


def guessed(tool: ToolSpec) -> Traits:
    """What a tool that nobody reviewed may do, from what its server says of it. A server that says nothing says the
    worst; one that calls a tool harmless is believed only as far as that it may be read and carry words out."""
    hints = tool.annotations
    words = {word.lower() for word in _NAME_WORD.findall(tool.original_name)}
    names = tuple(cast("JsonObject", tool.input_schema.get("properties") or {}))
    urls = tuple(name for name in names if _URL.search(_snake(name)))
    if hints.read_only and not words & (_SENDING | _DESTROYING | _RUNNING):
        rest = tuple(name for name in names if name not in urls)
        return Traits(classes=("read_untrusted",), urls=urls, queries=rest, known=False)
    classes: list[ToolClass] = []
    if hints.open_world or words & _SENDING:
        classes.append("send_outside")
    if hints.destructive or words & _DESTROYING:
        classes.append("destroy")
    if words & _RUNNING:
        classes.append("execute")
    if words & _RULING:
        classes.append("control")
    roles = {name: _snake(name) for name in names}
    code = tuple(name for name, role in roles.items() if _CODE.search(role))
    payload = tuple(name for name, role in roles.items() if _PAYLOAD.search(role) and name not in code)
    to = tuple(name for name, role in roles.items() if _TO.search(role) and name not in payload)
    paths = tuple(name for name, role in roles.items() if _PATH.search(role) and name not in to)
    known = {*urls, *code, *payload, *to, *paths}
    return Traits(
        classes=tuple(classes) or ("write_inside",),
        wants=_wanted(words),
        to=to,
        files=paths,
        urls=urls,
        code=code,
        payload=payload,
        of=tuple(name for name in names if name not in known),
        known=False,
    )


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().replace("-", "_")


def _wanted(words: set[str]) -> tuple[ActionKind, ...]:
    """The orders that fit the verb in its name; without one it fits none."""
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
