"""Finds the settings a running hub was started with."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from annabelle.cli.hub_client import HubFile
from annabelle.core.home import Home
from annabelle.core.settings import Settings
from annabelle.core.settings_file import SettingsFile


def read_hub_settings(home: Home, note: HubFile) -> Settings | None:
    """The settings a running hub uses, or None if they cannot be determined."""
    environment = _environment_of(note.pid)
    if environment is None or _changed_since(home.settings_file, note):
        return None
    known = SettingsFile(home.settings_file).values() | {name.upper(): value for name, value in environment.items()}
    try:
        return Settings.model_validate(
            {name: known[name.upper()] for name in Settings.model_fields if known.get(name.upper())}
        )
    except ValidationError:
        return None


def _environment_of(pid: int) -> dict[str, str] | None:
    """The environment a process was started with; Linux only."""
    try:
        text = Path(f"/proc/{pid}/environ").read_bytes().decode("utf-8", errors="surrogateescape")
    except OSError:
        return None
    return dict(pair.split("=", 1) for pair in text.split("\0") if "=" in pair)


def _changed_since(file: Path, note: HubFile) -> bool:
    """Whether the file changed after the hub started, which read it once."""
    try:
        changed = file.stat().st_mtime
    except OSError:
        return False
    return note.started is None or changed > note.started.timestamp()
