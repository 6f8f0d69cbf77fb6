"""A script as it is kept: one file with its code and all that is known of it."""

from __future__ import annotations

import re
import unicodedata
from datetime import datetime

from pydantic import BaseModel, ConfigDict

from annabelle.core.errors import InvalidArguments
from annabelle.servers.codexec.programs import Language

_NAME = re.compile(r"\w[\w .-]*", re.UNICODE)
_MAX_NAME_BYTES = 150


class Script(BaseModel):
    """What the file holds. A newer version may add fields, so unknown ones are no mistake."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str
    language: Language
    code: str
    tags: list[str] = []
    packages: list[str] = []
    created: datetime
    updated: datetime
    runs: int = 0
    last_run: datetime | None = None
    last_exit_code: int | None = None

    def same_content(self, other: Script) -> bool:
        own = (self.description, self.language, self.code, self.tags, self.packages)
        return own == (other.description, other.language, other.code, other.tags, other.packages)


def script_name(name: str) -> str:
    """A name that is a file name everywhere; how it is written, composed or decomposed, makes no difference."""
    wanted = unicodedata.normalize("NFC", name).strip()
    if _NAME.fullmatch(wanted) is None or wanted.endswith(".") or len(wanted.encode()) > _MAX_NAME_BYTES:
        raise InvalidArguments(
            f"{wanted[:100]!r} can not be the name of a script.",
            hint="Use letters, digits, spaces, dots, - and _; begin with a letter or digit.",
            field="name",
        )
    return wanted
