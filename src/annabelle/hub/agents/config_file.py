"""Reads agents.json and keeps the last good one: a bad edit never takes the agents away (AGT-01, I-18)."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path

from pydantic import ValidationError

from annabelle.core.errors import ConfigMistake
from annabelle.core.home import Home, write_atomically
from annabelle.core.settings import Settings
from annabelle.hub.agents.config import AGENT_ID, AgentsConfig, default_config
from annabelle.hub.notices import Notices

_log = logging.getLogger(__name__)
Stamp = tuple[int, int, int]


def parse(text: str, name: str) -> AgentsConfig:
    """The config in `text`; a fault is named with file, line or field, and reason."""
    try:
        json.loads(text)
        return AgentsConfig.model_validate_json(text)
    except json.JSONDecodeError as error:
        raise ConfigMistake(
            f"{name}, line {error.lineno}, column {error.colno}: {error.msg}.", hint="Fix the JSON there.", field=name
        ) from error
    except RecursionError as error:
        raise ConfigMistake(f"{name}: nested too deeply.", field=name) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(part) for part in first["loc"])
        reason = str(first["msg"]).removeprefix("Value error, ")
        raise ConfigMistake(f"{name}: {field + ': ' if field else ''}{reason}.", field=field or name) from error


class AgentsFile:
    """The agents.json of one install, read at start and again whenever it changes."""

    def __init__(self, home: Home, settings: Settings, notices: Notices) -> None:
        self.home = home
        self.path = settings.agents_config_path or home.agents_file
        self._good_path, self._settings, self._notices = home.good_agents_file, settings, notices
        self._stamp: Stamp | None = None

    def load(self) -> AgentsConfig:
        """The config to start with: the file, else its last good copy with a notice, else one default agent."""
        self._stamp = _stamp(self.path)
        try:
            return self._read()
        except ConfigMistake as mistake:
            good = self._last_good()
            if good is None:
                raise
            self._notices.add("agents_config", f"{mistake.message} The last good one stays in force.", level="error")
            return good

    def changed(self) -> AgentsConfig | None:
        """The new config when the file changed since the last look and is good; a bad one only gives a notice."""
        stamp = _stamp(self.path)
        if stamp == self._stamp:
            return None
        self._stamp = stamp
        try:
            config = self._read()
        except ConfigMistake as mistake:
            self._notices.add("agents_config", f"{mistake.message} The last good one stays in force.", level="error")
            return None
        self._notices.clear("agents_config")
        return config

    def _read(self) -> AgentsConfig:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return self._default()
        except UnicodeDecodeError as error:
            raise ConfigMistake(f"{self.path}: not UTF-8 text at byte {error.start}.", field=str(self.path)) from error
        except OSError as error:
            raise ConfigMistake(f"{self.path} can not be read: {error.strerror}.", field=str(self.path)) from error
        config = parse(text, str(self.path))
        self._keep(text)
        return config

    def _keep(self, text: str) -> None:
        try:
            if not self._good_path.exists() or self._good_path.read_text(encoding="utf-8", errors="replace") != text:
                write_atomically(self._good_path, text)
        except OSError as error:
            _log.warning("No copy of %s could be kept: %s", self.path, error.strerror)

    def _default(self) -> AgentsConfig:
        if not re.match(AGENT_ID, self._settings.thinker_agent_id):
            raise ConfigMistake(
                "THINKER_AGENT_ID is not valid: use up to 40 lower case letters, digits, - and _.",
                field="THINKER_AGENT_ID",
            )
        return default_config(self._settings)

    def _last_good(self) -> AgentsConfig | None:
        try:
            return parse(self._good_path.read_text(encoding="utf-8"), str(self._good_path))
        except (OSError, UnicodeDecodeError):
            return None
        except ConfigMistake as mistake:
            _log.warning("The last good copy is not usable either: %s", mistake.message)
            return None


def _stamp(path: Path) -> Stamp | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino
