"""Decides what of an external server may run and be offered: what the person accepted, nothing else (I-09, I-11)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass

from annabelle.core.errors import Conflict, StorageTrouble
from annabelle.core.redact import Redactor
from annabelle.core.visible import visible
from annabelle.toolbox.external.difference import difference, readable, unified
from annabelle.toolbox.external.entries import External
from annabelle.toolbox.external.likeness import EntryLikeness, Likeness
from annabelle.toolbox.external.pins import DamagedPin, Pin, PinsFile
from annabelle.toolbox.status import HoldState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Hold:
    """Why a server is held back. `digest` names what a yes would accept."""

    state: HoldState
    sentence: str
    digest: str


@dataclass(frozen=True, slots=True)
class Account:
    """One external server as a person looks at it before a yes."""

    name: str
    hold: Hold | None
    entry: tuple[str, ...]
    server: tuple[str, ...]
    diff: str


class Pinning:
    """One door for all: a first start, a restart, a changed file and a list of tools that changed while it ran.

    A new or changed entry does not run before the yes. The yes covers the tools the server lists then; from there on
    any change but a removal holds the whole server back, because a tool that stayed the same may do what a changed
    one tells the model to have it do.
    """

    def __init__(
        self, pins: PinsFile, *, need_yes: bool, on_hold: Callable[[str, Hold], None], redact: Redactor | None = None
    ) -> None:
        self._pins, self._need_yes, self._on_hold = pins, need_yes, on_hold
        self._redact = redact or Redactor()
        self._seen: dict[str, Likeness] = {}
        self._told: dict[str, Hold] = {}

    def may_start(self, server: External) -> Hold | None:
        """None when its entry is the one that was accepted."""
        self._seen.pop(server.profile.name, None)
        return self._checked(server)

    def may_be_offered(self, server: External, seen: Likeness) -> Hold | None:
        """None when what the server says of itself is what was accepted; the first words after a yes are pinned."""
        self._seen[server.profile.name] = seen.without(self._redact.known)
        return self._checked(server)

    def accept(self, server: External, digest: str | None) -> Hold | None:
        """The person's yes to what holds the server back; with `digest`, only if it is still what they looked at."""
        name, hold = server.profile.name, self._judged(server)
        if hold is None:
            return None
        if digest is not None and digest != hold.digest:
            raise Conflict(f"{name} has changed again since you looked at it.", hint=f"annabelle servers diff {name}")
        server_then = self._seen[name] if hold.state == "quarantined" else self._known(server)
        self._pins.put(name, Pin(entry=EntryLikeness.of(server.entry), accepted=True, server=server_then))
        return hold

    def reject(self, server: External) -> None:
        """The person's no: the entry does not run again before a yes. What was accepted before is remembered."""
        name = server.profile.name
        self._pins.put(name, Pin(entry=EntryLikeness.of(server.entry), accepted=False, server=self._known(server)))

    def account(self, server: External) -> Account:
        name, pin, hold = server.profile.name, self._believed(server), self._judged(server)
        entry = [visible(line) for line in EntryLikeness.of(server.entry).lines]
        known = None if pin is None else pin.server
        said = readable(self._seen.get(name, known))
        then = [] if pin is None else [*map(visible, pin.entry.lines), *readable(known)]
        diff = "" if hold is None else unified(then, [*entry, *said])
        return Account(name, hold, tuple(entry), tuple(said), diff)

    def _checked(self, server: External) -> Hold | None:
        self._keep_masked(server)
        name, hold = server.profile.name, self._judged(server)
        if hold is None:
            self._pin(server)
            self._told.pop(name, None)
        elif self._told.get(name) != hold:
            self._told[name] = hold
            self._on_hold(name, hold)
        return hold

    def _judged(self, server: External) -> Hold | None:
        name, entry = server.profile.name, EntryLikeness.of(server.entry)
        accept = f"Waiting for your yes: annabelle servers accept {name}"
        try:
            pin = self._pinned(server)
        except DamagedPin as damage:
            return Hold("waiting", f"{damage}. {accept}", entry.digest)
        if pin is None or pin.entry.digest != entry.digest:
            if self._need_yes:
                why = "it is new" if pin is None else "its entry in the file of servers has changed"
                return Hold("waiting", f"{why}. {accept}", entry.digest)
        elif not pin.accepted:
            return Hold(
                "rejected", f"you rejected it. If you want it after all: annabelle servers accept {name}", entry.digest
            )
        seen = self._seen.get(name)
        found = (
            difference(pin.server, seen) if pin is not None and pin.server is not None and seen is not None else None
        )
        if not found or seen is None:
            return None
        look = f"Look at it, then say yes or no: annabelle servers diff {name}"
        return Hold("quarantined", f"it is not what you accepted: {found.sentence()}. {look}", seen.digest)

    def _pin(self, server: External) -> None:
        """Keep what is new and may stay: an entry that needed no yes, and what a server said first."""
        name, entry = server.profile.name, EntryLikeness.of(server.entry)
        pin, seen = self._believed(server), self._seen.get(name)
        if pin is None or pin.entry.digest != entry.digest or (pin.server is None and seen is not None):
            known = None if pin is None else pin.server
            try:
                self._pins.put(name, Pin(entry=entry, accepted=True, server=known or seen))
            except StorageTrouble as trouble:  # it stays what it was before: the next look tries again
                _log.warning("%s is not pinned: %s", name, trouble.message)

    def _keep_masked(self, server: External) -> None:
        """Take out of the file what was pinned before secrets were masked. It is the same pin: nothing has changed."""
        name = server.profile.name
        try:
            pin = self._pinned(server)
            if pin is not None and pin != self._pins.get(name):
                self._pins.put(name, pin)
        except DamagedPin:
            return  # whoever judges it says so
        except StorageTrouble as trouble:
            _log.warning("A secret in the pin of %s is not masked yet: %s", name, trouble.message)

    def _known(self, server: External) -> Likeness | None:
        pin = self._believed(server)
        return None if pin is None else pin.server

    def _believed(self, server: External) -> Pin | None:
        try:
            return self._pinned(server)
        except DamagedPin:
            return None

    def _pinned(self, server: External) -> Pin | None:
        """What was accepted, as it would be kept today: without a secret; raises DamagedPin."""
        pin, entry = self._pins.get(server.profile.name), EntryLikeness.of(server.entry)
        if pin is None:
            return None
        if pin.entry.digest != entry.digest:
            entry = pin.entry.model_copy(update={"lines": tuple(map(self._redact, pin.entry.lines))})
        known = None if pin.server is None else pin.server.without(self._redact.known)
        return pin.model_copy(update={"entry": entry, "server": known})
