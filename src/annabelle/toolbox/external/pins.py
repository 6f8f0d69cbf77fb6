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

from annabelle.core.errors import Conflict, StorageTrouble, explain_os_error
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
    """The person's decision about one entry, and the server's fingerprint then; None if it has never run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    entry: EntryFingerprint
    accepted: bool
    server: ServerFingerprint | None = None
    decided_at: datetime = Field(default_factory=now)


class DamagedPin(Exception):
    """A pin is not as this home wrote it. The text says what is wrong."""


class PinsFile:
    """Each pin is sealed with a key of this home, so that another program cannot accept a server by editing the file.

    The file is read again each time, so changes while the hub runs count too.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key_path = path.with_name("pins-key.json")

    def get(self, name: str) -> ServerPin | None:
        """The pin of a server; raises DamagedPin if its seal is wrong."""
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
        """Write a pin; raises StorageTrouble when the disk refuses it."""
        hint = "Free some disk space, and try again."
        with explain_os_error(StorageTrouble, f"{self._path.name} can not be written", hint=hint):
            self._save(name, pin)

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
        """The key, or a new one if there is none. A key that cannot be read right now stays: all pins depend on it."""
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
    """An external server as a person reviews it before accepting it."""

    name: str
    hold: ServerHold | None
    entry: tuple[str, ...]
    server: tuple[str, ...]
    diff: str


class PinChecker:
    """The one check for every start, restart, changed file and changed tool list.

    A new or changed entry does not run before it is accepted. Acceptance covers the tools the server lists then. Any
    later change but a removal holds the whole server back, because a changed tool could tell the model to misuse an
    unchanged one.
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
        """None when its entry is the accepted one."""
        self._seen.pop(server.profile.name, None)
        return self._check(server)

    def may_be_offered(self, server: ExternalServer, seen: ServerFingerprint) -> ServerHold | None:
        """None when the server is what was accepted. Its first fingerprint after an acceptance is pinned."""
        self._seen[server.profile.name] = seen.mask(self._redact.distinctive_secrets)
        return self._check(server)

    def accept(self, server: ExternalServer, digest: str | None) -> ServerHold | None:
        """Accept what holds the server back; with `digest`, only if it is still what the person reviewed."""
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
        """Keep the entry from running until it is accepted. The fingerprint accepted before is kept."""
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
        """Pin an entry that needed no acceptance, and the first fingerprint of a server."""
        name, entry = server.profile.name, EntryFingerprint.from_entry(server.entry)
        pin, seen = self._valid_pin(server), self._seen.get(name)
        if pin is None or pin.entry.digest != entry.digest or (pin.server is None and seen is not None):
            known = None if pin is None else pin.server
            try:
                self._pins.save(name, ServerPin(entry=entry, accepted=True, server=known or seen))
            except StorageTrouble as trouble:  # the next check tries again
                _log.warning("%s is not pinned: %s", name, trouble.message)

    def _keep_masked(self, server: ExternalServer) -> None:
        """Mask secrets in a pin that was written before secrets were masked. The decision stays the same."""
        name = server.profile.name
        try:
            pin = self._read_pin(server)
            if pin is not None and pin != self._pins.get(name):
                self._pins.save(name, pin)
        except DamagedPin:
            return  # `_find_hold` reports it
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
        """The pin with its secrets masked; raises DamagedPin."""
        pin, entry = self._pins.get(server.profile.name), EntryFingerprint.from_entry(server.entry)
        if pin is None:
            return None
        if pin.entry.digest != entry.digest:
            entry = pin.entry.model_copy(update={"lines": tuple(map(self._redact, pin.entry.lines))})
        known = None if pin.server is None else pin.server.mask(self._redact.distinctive_secrets)
        return pin.model_copy(update={"entry": entry, "server": known})
