"""The owner's API token: made at the first start, kept in the home, readable by its owner only (API-01)."""

from __future__ import annotations

import logging
import os
import re
import secrets
import stat
from pathlib import Path

from annabelle.core.errors import ConfigMistake, OperatorMistake
from annabelle.core.home import Home, write_atomically
from annabelle.core.settings import Settings

_log = logging.getLogger(__name__)
_GOOD = re.compile(r"[!-~]{16,512}")


def owner_token(home: Home, settings: Settings) -> str:
    """The token in force; a missing, damaged or exposed file is repaired, and the log says so."""
    if settings.annabelle_token is not None:
        configured = settings.annabelle_token.get_secret_value()
        if not _GOOD.fullmatch(configured):
            raise ConfigMistake(
                "ANNABELLE_TOKEN is not valid: it must be 16 to 512 visible ASCII characters.",
                hint="Set a longer one, or remove it and Annabelle makes its own.",
                field="ANNABELLE_TOKEN",
            )
        return configured
    return _from_file(home.token_file)


def _from_file(path: Path) -> str:
    try:
        token = path.read_bytes().strip().decode("ascii", errors="replace")
        exposed = stat.S_IMODE(path.stat().st_mode) & 0o077
    except FileNotFoundError:
        return _make(path)
    except OSError as error:
        raise OperatorMistake(
            f"The token file {path} can not be read: {error.strerror}.",
            hint="Remove it or fix its permissions; a new token is made when it is missing.",
        ) from error
    if not _GOOD.fullmatch(token):
        _log.warning("The token file was damaged or empty; a new token was made, so clients must read it again.")
        return _make(path)
    if exposed:
        _log.warning("The token file was readable by others; its mode is 0600 again.")
        _close(path)
    return token


def _make(path: Path) -> str:
    token = secrets.token_urlsafe(32)
    try:
        write_atomically(path, token + "\n", mode=0o600)
    except OSError as error:
        raise OperatorMistake(
            f"The token file {path} can not be written: {error.strerror}.",
            hint="Free space or fix the permissions of the home.",
        ) from error
    return token


def _close(path: Path) -> None:
    try:
        os.chmod(path, 0o600)
    except OSError as error:
        raise OperatorMistake(
            f"The token file {path} is readable by others and its mode can not be changed: {error.strerror}.",
            hint=f"Run chmod 600 {path} as its owner.",
        ) from error
