"""`/settings`: every setting with its value, for the owner. Secrets can be set and are never shown."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from fastapi import Request
from pydantic import Field
from pydantic.fields import FieldInfo

from annabelle.core.errors import ConfigMistake, InvalidArguments, NotAllowed
from annabelle.core.secrets.redactor import passwords_in_url
from annabelle.core.settings import Settings
from annabelle.core.settings_file import (
    SettingKind,
    SettingOrigin,
    SettingsFile,
    check_value,
    find_kind,
    find_setting,
    find_text,
    format_value,
    is_secret,
    list_choices,
    list_types,
    parse_value,
)
from annabelle.hub.api.endpoint import ApiAnswer, ApiBody, ApiRouter, Caller, TheHub, document, read_body
from annabelle.hub.context import HubContext
from annabelle.hub.security.identities import CallerIdentity

router = ApiRouter("settings")
_OWN_TOKEN_ONLY: Final = frozenset({"ANNABELLE_TOKEN", "CODEXEC_CONTAINER_ENGINE", "OTEL_FILE"})
"""Beside all paths. They say who the owner is, or which programs and files are used outside of the home."""


class SettingView(ApiAnswer):
    """One setting, as the next start will read it."""

    name: str
    description: str
    kind: SettingKind = Field(description="secret: its value is never sent")
    choices: list[str]
    value: str | None = Field(description="null for secrets")
    default: str
    is_set: bool = Field(description="Whether it has another value than its default, also for secrets")
    origin: SettingOrigin = Field(description="Where the value comes from; the environment comes before the home")
    problem: str | None = Field(description="Why the value is not valid, if somebody wrote a wrong one into the file")
    restart_needed: bool = Field(description="Annabelle runs with another value until it is started again")
    terminal_only: bool = Field(description="Whether this token may not change it, but `annabelle config set` can")


class SettingList(ApiAnswer):
    settings: list[SettingView]


class SettingChange(ApiBody):
    name: str = Field(max_length=100, examples=["USER_NAME"])
    value: str | None = Field(default=None, max_length=10_000, description="Empty or null: back to the default")


@router.get("/settings", **document("All settings"))
async def list_settings(hub: TheHub, caller: Caller) -> SettingList:
    """With what each is for. What is changed counts from the next start."""
    in_file = await asyncio.to_thread(SettingsFile(hub.base.home.settings_file).values)
    found = [_view(hub, caller, name.upper(), field, in_file) for name, field in Settings.model_fields.items()]
    return SettingList(settings=found)


@router.post("/settings", **document("Change a setting", 404, body=SettingChange))
async def change_setting(hub: TheHub, caller: Caller, request: Request) -> SettingView:
    """A value that is not valid is refused, and the old one stays. It counts from the next start."""
    wanted = await read_body(request, SettingChange)
    name, field = find_setting(wanted.name)
    await save_settings(hub, caller, {name: wanted.value or ""})
    return _view(hub, caller, name, field, await asyncio.to_thread(SettingsFile(hub.base.home.settings_file).values))


async def save_settings(hub: HubContext, caller: CallerIdentity, wanted: Mapping[str, str]) -> None:
    """Set settings in the home, or, with an empty value, take them out: all of them, or none if one is refused."""
    checked = {name: _check(hub, caller, name, value) for name, value in wanted.items()}
    await asyncio.to_thread(SettingsFile(hub.base.home.settings_file).change, checked)
    for name in checked:
        hub.security.audit.note(
            "config", {"event": "changed", "what": "settings", "setting": name, "by": caller.user_id}
        )


def _check(hub: HubContext, caller: CallerIdentity, name: str, value: str) -> str:
    """The value as it is to be written."""
    _, field = find_setting(name)
    if _is_terminal_only(caller, name, field):
        raise NotAllowed(
            f"{name} is set in a terminal, because it reaches beyond this home.",
            hint=f"annabelle config set {name}",
            field=name,
        )
    try:
        text = check_value(name, field, value) if value else ""
    except ConfigMistake as mistake:
        raise InvalidArguments(mistake.message, hint=mistake.hint, field=name) from mistake
    if text and is_secret(field):
        hub.base.redact.learn([text])
    return text


def _view(hub: HubContext, caller: CallerIdentity, name: str, field: FieldInfo, in_file: dict[str, str]) -> SettingView:
    origin, text = find_text(name, in_file)
    value, problem = field.default, None
    try:
        value = parse_value(name, field, text) if text else field.default
    except ConfigMistake as mistake:
        problem = mistake.message
    # An address may hold a password.
    hidden = is_secret(field) or any(passwords_in_url(text)) or hub.base.redact(text) != text
    return SettingView(
        name=name,
        description=field.description or "",
        kind="secret" if hidden else find_kind(field),
        choices=list_choices(field),
        value=None if hidden else text or format_value(field.default),
        default="" if is_secret(field) else format_value(field.default),
        is_set=value != field.default or problem is not None,
        origin=origin,
        problem=problem,
        restart_needed=value != getattr(hub.base.settings, name.lower()),
        terminal_only=_is_terminal_only(caller, name, field),
    )


def _is_terminal_only(caller: CallerIdentity, name: str, field: FieldInfo) -> bool:
    """Whether it takes a token that may also make tokens. With these settings a device could become the owner."""
    return (name in _OWN_TOKEN_ONLY or Path in list_types(field)) and "tokens" not in caller.grant.scopes
