"""JSON files that people edit: read strictly, with errors that name the place, and noticed when they change."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from annabelle.core.errors import ConfigMistake, OperatorMistake, explain_os_error, first_problem
from annabelle.core.models import CamelModel

M = TypeVar("M", bound=BaseModel)


class ConfigEntry(CamelModel):
    """A part of a config file. Strict: a misspelled field is an error."""

    model_config = ConfigDict(extra="forbid")


def parse_config(model: type[M], text: str, name: str) -> M:
    """A ConfigMistake names the file, the line or field, and the reason."""
    try:
        json.loads(text)  # pydantic's own error names no line
        return model.model_validate_json(text)
    except json.JSONDecodeError as error:
        raise ConfigMistake(
            f"{name}, line {error.lineno}, column {error.colno}: {error.msg}.", hint="Fix the JSON there.", field=name
        ) from error
    except RecursionError as error:
        raise ConfigMistake(f"{name}: nested too deeply.", field=name) from error
    except ValidationError as error:
        field, reason = first_problem(error)
        raise ConfigMistake(f"{name}: {field + ': ' if field else ''}{reason}.", field=field or name) from error


class ConfigFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int, int] | None = None

    def has_changed(self) -> bool:
        """Whether the file was written since the last call. A file that was never there has not changed."""
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size, status.st_ino)
        except OSError:
            stamp = None
        before, self._stamp = self._stamp, stamp
        return stamp != before

    def read_text(self) -> str | None:
        """The text, None if there is no file."""
        try:
            return self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise ConfigMistake(f"{self.path}: not UTF-8 text at byte {error.start}.", field=str(self.path)) from error
        except OSError as error:
            raise ConfigMistake(f"{self.path} can not be read: {error.strerror}.", field=str(self.path)) from error


@contextmanager
def lock_for_change(path: Path) -> Generator[None]:
    """Let one process at a time change the file. The kernel frees the lock of a process that dies."""
    with explain_os_error(OperatorMistake, f"{path} can not be changed", hint="Fix the permissions of the home."):
        path.parent.mkdir(parents=True, exist_ok=True)
        folder = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
