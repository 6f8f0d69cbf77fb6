"""The secrets of this home that are in no variable: those of the accounts the person connected, and the database's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import cast

from annabelle.core.connections import KINDS, connection_file
from annabelle.core.home import Home
from annabelle.core.redact import Redactor, is_secret_name, passwords_in


class HomeSecrets:
    """Teaches the redactor what is connected, also while the hub runs, and masks what people write."""

    def __init__(self, home: Home, redact: Redactor, database_url: str | None = None) -> None:
        self._redact = redact
        self._files = {connection_file(home, kind): -1 for kind in KINDS}
        if database_url is not None:
            redact.learn(passwords_in(database_url))
        self.look()

    def look(self) -> None:
        """Learn what is new; a look at files that have not changed costs nothing."""
        for file, seen in self._files.items():
            try:
                changed = file.stat().st_mtime_ns
                if changed == seen:
                    continue
                kept: object = json.loads(file.read_bytes())
            except (OSError, ValueError):
                continue  # the server that needs the account says what is wrong with it
            self._redact.learn(_secrets(kept))
            self._files[file] = changed

    def masked(self, text: str) -> str:
        """What a person wrote, as it may be kept: a key of this home that was pasted is of no use to a model."""
        self.look()
        return self._redact.known.masked(text)


def _secrets(kept: object) -> Iterator[str]:
    if isinstance(kept, dict):
        for name, value in cast("dict[str, object]", kept).items():
            if isinstance(value, str) and is_secret_name(name):
                yield value
