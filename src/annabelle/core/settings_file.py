"""Reads and changes `config/settings.env`, and says of each setting where its value comes from."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Literal, get_args
from zoneinfo import available_timezones

from dotenv import dotenv_values
from pydantic import SecretStr, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from annabelle.core.config_file import lock_for_change
from annabelle.core.errors import ConfigMistake, NotFound, StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.core.settings import Settings

SettingOrigin = Literal["environment", "home", "default"]
SettingKind = Literal["text", "number", "switch", "choice", "secret"]

_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=")
_PLAIN = re.compile(r"[\w.,:/@%+~\-\[\]{}]*")


def find_setting(name: str) -> tuple[str, FieldInfo]:
    """Find a setting by name, in any case; the error suggests close matches."""
    field = Settings.model_fields.get(name.lower())
    if field is None:
        close = get_close_matches(name.upper(), [known.upper() for known in Settings.model_fields], n=3)
        hint = f"Did you mean {' or '.join(close)}?" if close else "annabelle config list shows them all."
        raise NotFound(f"There is no setting {name.upper()}.", hint=hint)
    return name.upper(), field


def is_secret(field: FieldInfo) -> bool:
    return SecretStr in list_types(field)


def list_types(field: FieldInfo) -> tuple[object, ...]:
    return get_args(field.annotation) or (field.annotation,)


def list_choices(field: FieldInfo) -> list[str]:
    """The values of a setting that has only some."""
    return [one for one in list_types(field) if isinstance(one, str)]


def find_kind(field: FieldInfo) -> SettingKind:
    """How a form asks for it."""
    types = list_types(field)
    if SecretStr in types:
        return "secret"
    if bool in types:
        return "switch"
    return "number" if int in types or float in types else "choice" if list_choices(field) else "text"


def find_zone(name: str) -> str:
    """The proper name of a time zone, which may be given in any case."""
    zone = next((zone for zone in available_timezones() if zone.lower() == name.lower()), None)
    if zone is None:
        raise ConfigMistake(f"There is no time zone {name!r}.", hint="Write it as in Europe/Berlin.")
    return zone


def check_value(name: str, field: FieldInfo, text: str) -> str:
    """The value as it is to be written; an invalid one is refused. The message never repeats a secret."""
    if not text.isprintable():
        raise ConfigMistake(f"{name} is not valid: it must be one line of visible characters.", field=name)
    if "${" in text:
        raise ConfigMistake(
            f"{name} is not valid: the settings file reads ${{…}} as the name of another setting.",
            hint="Give this one in the environment instead.",
            field=name,
        )
    parse_value(name, field, text)
    return find_zone(text) if name == "USER_TIMEZONE" else text


def parse_value(name: str, field: FieldInfo, text: str) -> object:
    """The value a text stands for, by the type and bounds of this one field."""
    try:
        return TypeAdapter[object](Annotated[field.annotation, field]).validate_python(text)  # pyright: ignore
    except ValidationError as error:
        reason = error.errors(include_url=False, include_input=False)[0]["msg"]
        raise ConfigMistake(
            f"{name} is not valid: {reason}.",
            hint=f"It is: {field.description}." if field.description else None,
            field=name,
        ) from error


def format_value(value: object) -> str:
    """A value as it is written in the file. Secrets are for the caller to mask."""
    return str(value).lower() if isinstance(value, bool) else "" if value is None else str(value)


def find_text(name: str, in_file: dict[str, str]) -> tuple[SettingOrigin, str]:
    """Where the value of a setting comes from at the next start, and its text; no text if it is the default."""
    for known, value in os.environ.items():
        if known.upper() == name and value:
            return "environment", value
    return ("home", in_file[name]) if in_file.get(name) else ("default", "")


@dataclass(frozen=True, slots=True)
class SettingsFile:
    """The settings file. It can be edited by hand: comments and unknown lines are kept."""

    path: Path

    def values(self) -> dict[str, str]:
        found = dotenv_values(stream=io.StringIO(self._read()), interpolate=False)
        return {name.upper(): value for name, value in found.items() if value is not None}

    def set(self, name: str, value: str) -> None:
        self.change({name: value})

    def unset(self, name: str) -> bool:
        """Remove a setting; False if the file did not have it."""
        return self.change({name: ""})

    def change(self, values: Mapping[str, str]) -> bool:
        """Set all of these at once, and remove those that are empty. Returns whether anything was changed."""
        new = [f"{name}={_quote(value)}" for name, value in values.items() if value]
        if not new and not self.path.exists():
            return False
        with lock_for_change(self.path):
            before = self._read().splitlines()
            kept = [line for line in before if not (found := _LINE.match(line)) or found[1].upper() not in values]
            if changed := kept + new != before:
                self._write(kept + new)
            return changed

    def _read(self) -> str:
        try:
            return self.path.read_text(encoding="utf-8") if self.path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigMistake(
                f"{self.path} can not be read: {error}.", hint="Fix the file, or remove it to start from the defaults."
            ) from error

    def _write(self, lines: list[str]) -> None:
        try:
            write_atomically(self.path, "".join(f"{line}\n" for line in lines))
        except OSError as error:
            raise StorageTrouble(
                f"{self.path} could not be written: {error.strerror}.", hint="The settings are as they were before."
            ) from error


def _quote(value: str) -> str:
    """Quote for dotenv: within single quotes, only quotes and backslashes need escaping."""
    if _PLAIN.fullmatch(value):
        return value
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
