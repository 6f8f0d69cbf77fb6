"""The file that remembers what was accepted. What is torn or was edited in it counts as never accepted."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.core.messages import now
from annabelle.core.tools import JsonObject
from annabelle.toolbox.external.likeness import EntryLikeness, Likeness, canonical

_log = logging.getLogger(__name__)


class Pin(BaseModel):
    """What the person said of one entry, and what its server was then; nothing yet when it has never run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry: EntryLikeness
    accepted: bool
    server: Likeness | None = None
    decided_at: datetime = Field(default_factory=now)


class DamagedPin(Exception):
    """There is a pin, and it is not as we wrote it. The text says what is wrong, as the end of a sentence."""


class PinsFile:
    """Each pin is sealed with a key of this home, so that a line put in by another program is not taken for a yes.

    It is read anew each time: what happens to the file while the hub runs is seen, too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key_path = path.with_name("pins-key.json")

    def get(self, name: str) -> Pin | None:
        """The pin of a server; raises DamagedPin for one that can not be believed."""
        sealed = self._read().get(name)
        if sealed is None:
            return None
        try:
            entry = cast("JsonObject", sealed)
            pin, seal = entry["pin"], entry["seal"]
            if not isinstance(seal, str) or not hmac.compare_digest(seal, _seal(self._key(), name, pin)):
                raise DamagedPin(f"what {self._path.name} says of it was not written by this Annabelle")
            return Pin.model_validate(pin)
        except (TypeError, KeyError, ValueError, OSError) as error:
            raise DamagedPin(f"what {self._path.name} says of it can not be read") from error

    def put(self, name: str, pin: Pin) -> None:
        """Keep a pin; raises StorageTrouble when the disk does not take it."""
        try:
            self._put(name, pin)
        except OSError as error:
            raise StorageTrouble(
                f"{self._path.name} can not be written: {error.strerror}.", hint="Free some disk space, and try again."
            ) from error

    def _put(self, name: str, pin: Pin) -> None:
        try:
            pins = self._read()
        except DamagedPin:
            kept = self._path.with_name(f"{self._path.name}.damaged-{secrets.token_hex(4)}")
            _log.warning("%s could not be read and is kept as %s", self._path.name, kept.name)
            self._path.replace(kept)
            pins = {}
        said = pin.model_dump(mode="json")
        pins[name] = {"pin": said, "seal": _seal(self._key_to_seal_with(), name, said)}
        write_atomically(self._path, json.dumps({"servers": pins}, indent=1, sort_keys=True) + "\n")

    def _read(self) -> JsonObject:
        try:
            parsed: object = json.loads(self._path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as error:
            raise DamagedPin(f"{self._path.name} can not be read") from error
        servers = cast("JsonObject", parsed).get("servers") if isinstance(parsed, dict) else None
        if not isinstance(servers, dict):
            raise DamagedPin(f"{self._path.name} can not be read")
        return cast("JsonObject", servers)

    def _key(self) -> bytes:
        return bytes.fromhex(str(cast("JsonObject", json.loads(self._key_path.read_text(encoding="utf-8")))["key"]))

    def _key_to_seal_with(self) -> bytes:
        """The key; a new one where there is none. One that can not be read just now stays: all pins hang on it."""
        try:
            return self._key()
        except (FileNotFoundError, ValueError, TypeError, KeyError):
            key = secrets.token_bytes(32)
            write_atomically(self._key_path, json.dumps({"key": key.hex()}) + "\n")
            return key


def _seal(key: bytes, name: str, pin: object) -> str:
    return hmac.new(key, canonical([name, pin]).encode(), sha256).hexdigest()
