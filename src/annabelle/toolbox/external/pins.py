"""Lets an external server run only as the person accepted it; acceptances are sealed in a file (I-09, I-11)."""

from __future__ import annotations

import hmac
import json
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import cast

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import Conflict, StorageTrouble
from annabelle.core.home import write_atomically
from annabelle.core.messages import now
from annabelle.core.secrets.redactor import Redactor
from annabelle.core.text import escape_invisible
from annabelle.core.tools import JsonObject
from annabelle.toolbox.external.entries import ExternalServer
from annabelle.toolbox.external.fingerprint import (
    EntryFingerprint,
    ServerFingerprint,
    diff_fingerprints,
    fingerprint_lines,
    format_unified_diff,
    to_canonical_json,
)
from annabelle.toolbox.status import HoldState

_log = logging.getLogger(__name__)


class ServerPin(BaseModel):
    """What the person said of one entry, and what its server was then; nothing yet when it has never run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry: EntryFingerprint
    accepted: bool
    server: ServerFingerprint | None = None
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

    def get(self, name: str) -> ServerPin | None:
        """The pin of a server; raises DamagedPin for one that can not be believed."""
        sealed = self._read().get(name)
        if sealed is None:
            return None
        try:
            entry = cast("JsonObject", sealed)
            pin, seal = entry["pin"], entry["seal"]
            if not isinstance(seal, str) or not hmac.compare_digest(seal, _seal(self._key(), name, pin)):
                raise DamagedPin(f"what {self._path.name} says of it was not written by this Annabelle")
            return ServerPin.model_validate(pin)
        except (TypeError, KeyError, ValueError, OSError) as error:
            raise DamagedPin(f"what {self._path.name} says of it can not be read") from error

    def save(self, name: str, pin: ServerPin) -> None:
        """Keep a pin; raises StorageTrouble when the disk does not take it."""
        try:
            self._save(name, pin)
        except OSError as error:
            raise StorageTrouble(
                f"{self._path.name} can not be written: {error.strerror}.", hint="Free some disk space, and try again."
            ) from error

    def _save(self, name: str, pin: ServerPin) -> None:
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
    return hmac.new(key, to_canonical_json([name, pin]).encode(), sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class ServerHold:
    """Why a server is held back. `digest` names what a yes would accept."""

    state: HoldState
    sentence: str
    digest: str


@dataclass(frozen=True, slots=True)
class ServerReview:
    """One external server as a person looks at it before a yes."""

    name: str
    hold: ServerHold | None
    entry: tuple[str, ...]
    server: tuple[str, ...]
    diff: str


class PinChecker:
    """One door for all: a first start, a restart, a changed file and a list of tools that changed while it ran.

    A new or changed entry does not run before the yes. The yes covers the tools the server lists then; from there on
    any change but a removal holds the whole server back, because a tool that stayed the same may do what a changed
    one tells the model to have it do.
    """

    def __init__(
        self,
        pins: PinsFile,
        *,
        need_yes: bool,
        on_hold: Callable[[str, ServerHold], None],
        redact: Redactor | None = None,
    ) -> None:
        self._pins, self._need_yes, self._on_hold = pins, need_yes, on_hold
        self._redact = redact or Redactor()
        self._seen: dict[str, ServerFingerprint] = {}
        self._reported: dict[str, ServerHold] = {}

    def may_start(self, server: ExternalServer) -> ServerHold | None:
        """None when its entry is the one that was accepted."""
        self._seen.pop(server.profile.name, None)
        return self._check(server)

    def may_be_offered(self, server: ExternalServer, seen: ServerFingerprint) -> ServerHold | None:
        """None when what the server says of itself is what was accepted; the first words after a yes are pinned."""
        self._seen[server.profile.name] = seen.mask(self._redact.distinctive_secrets)
        return self._check(server)

    def accept(self, server: ExternalServer, digest: str | None) -> ServerHold | None:
        """The person's yes to what holds the server back; with `digest`, only if it is still what they looked at."""
        name, hold = server.profile.name, self._find_hold(server)
        if hold is None:
            return None
        if digest is not None and digest != hold.digest:
            raise Conflict(f"{name} has changed again since you looked at it.", hint=f"annabelle servers diff {name}")
        server_then = self._seen[name] if hold.state == "quarantined" else self._accepted_fingerprint(server)
        self._pins.save(
            name, ServerPin(entry=EntryFingerprint.from_entry(server.entry), accepted=True, server=server_then)
        )
        return hold

    def reject(self, server: ExternalServer) -> None:
        """The person's no: the entry does not run again before a yes. What was accepted before is remembered."""
        name = server.profile.name
        self._pins.save(
            name,
            ServerPin(
                entry=EntryFingerprint.from_entry(server.entry),
                accepted=False,
                server=self._accepted_fingerprint(server),
            ),
        )

    def review(self, server: ExternalServer) -> ServerReview:
        name, pin, hold = server.profile.name, self._valid_pin(server), self._find_hold(server)
        entry = [escape_invisible(line) for line in EntryFingerprint.from_entry(server.entry).lines]
        known = None if pin is None else pin.server
        said = fingerprint_lines(self._seen.get(name, known))
        then = [] if pin is None else [*map(escape_invisible, pin.entry.lines), *fingerprint_lines(known)]
        diff = "" if hold is None else format_unified_diff(then, [*entry, *said])
        return ServerReview(name, hold, tuple(entry), tuple(said), diff)

    def _check(self, server: ExternalServer) -> ServerHold | None:
        self._keep_masked(server)
        name, hold = server.profile.name, self._find_hold(server)
        if hold is None:
            self._pin(server)
            self._reported.pop(name, None)
        elif self._reported.get(name) != hold:
            self._reported[name] = hold
            self._on_hold(name, hold)
        return hold

    def _find_hold(self, server: ExternalServer) -> ServerHold | None:
        name, entry = server.profile.name, EntryFingerprint.from_entry(server.entry)
        accept = f"Waiting for your yes: annabelle servers accept {name}"
        try:
            pin = self._read_pin(server)
        except DamagedPin as damage:
            return ServerHold("waiting", f"{damage}. {accept}", entry.digest)
        if pin is None or pin.entry.digest != entry.digest:
            if self._need_yes:
                why = "it is new" if pin is None else "its entry in the file of servers has changed"
                return ServerHold("waiting", f"{why}. {accept}", entry.digest)
        elif not pin.accepted:
            return ServerHold(
                "rejected", f"you rejected it. If you want it after all: annabelle servers accept {name}", entry.digest
            )
        seen = self._seen.get(name)
        found = (
            diff_fingerprints(pin.server, seen)
            if pin is not None and pin.server is not None and seen is not None
            else None
        )
        if not found or seen is None:
            return None
        look = f"Look at it, then say yes or no: annabelle servers diff {name}"
        return ServerHold("quarantined", f"it is not what you accepted: {found.sentence()}. {look}", seen.digest)

    def _pin(self, server: ExternalServer) -> None:
        """Keep what is new and may stay: an entry that needed no yes, and what a server said first."""
        name, entry = server.profile.name, EntryFingerprint.from_entry(server.entry)
        pin, seen = self._valid_pin(server), self._seen.get(name)
        if pin is None or pin.entry.digest != entry.digest or (pin.server is None and seen is not None):
            known = None if pin is None else pin.server
            try:
                self._pins.save(name, ServerPin(entry=entry, accepted=True, server=known or seen))
            except StorageTrouble as trouble:  # it stays what it was before: the next look tries again
                _log.warning("%s is not pinned: %s", name, trouble.message)

    def _keep_masked(self, server: ExternalServer) -> None:
        """Take out of the file what was pinned before secrets were masked. It is the same pin: nothing has changed."""
        name = server.profile.name
        try:
            pin = self._read_pin(server)
            if pin is not None and pin != self._pins.get(name):
                self._pins.save(name, pin)
        except DamagedPin:
            return  # whoever judges it says so
        except StorageTrouble as trouble:
            _log.warning("A secret in the pin of %s is not masked yet: %s", name, trouble.message)

    def _accepted_fingerprint(self, server: ExternalServer) -> ServerFingerprint | None:
        pin = self._valid_pin(server)
        return None if pin is None else pin.server

    def _valid_pin(self, server: ExternalServer) -> ServerPin | None:
        try:
            return self._read_pin(server)
        except DamagedPin:
            return None

    def _read_pin(self, server: ExternalServer) -> ServerPin | None:
        """What was accepted, as it would be kept today: without a secret; raises DamagedPin."""
        pin, entry = self._pins.get(server.profile.name), EntryFingerprint.from_entry(server.entry)
        if pin is None:
            return None
        if pin.entry.digest != entry.digest:
            entry = pin.entry.model_copy(update={"lines": tuple(map(self._redact, pin.entry.lines))})
        known = None if pin.server is None else pin.server.mask(self._redact.distinctive_secrets)
        return pin.model_copy(update={"entry": entry, "server": known})
