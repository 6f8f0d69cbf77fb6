"""Queues audit notes without blocking callers; one thread writes them.

Notes are written within milliseconds, so a killed process loses only its last ones. Kinds in `_IMMEDIATE_KINDS` are
written before `note` returns.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from annabelle.core.errors import AlreadyRunning, StorageTrouble
from annabelle.core.tools import JsonObject
from annabelle.core.trust import AuditKind
from annabelle.store.audit.chain import AuditChain, AuditNote, timestamp_now

_log = logging.getLogger(__name__)
_IMMEDIATE_KINDS: Final = frozenset({"approval", "rule", "stop", "forget"})
_MOST_WAITING: Final = 20_000
_BATCH: Final = 500
_SYNC_SECONDS: Final = 0.5
_SYNC_AT_LATEST_SECONDS: Final = 2.0
_RETRY_SECONDS: Final = 1.0
_LOCK_SECONDS: Final = 0.05


class AuditWriter:
    """The audit of a running hub. A full disk stops nothing: notes wait, and lost ones are counted."""

    def __init__(self, chain: AuditChain, on_trouble: Callable[[str | None], None] = lambda _text: None) -> None:
        """`on_trouble` gets a message, from another thread, when writing fails, and None when it works again."""
        self._chain, self._on_trouble = chain, on_trouble
        self._waiting: deque[AuditNote] = deque()
        self._lost = 0
        self._lost_since: str | None = None
        self._writing = threading.Lock()
        self._something = threading.Event()
        self._over = threading.Event()
        self._opened = self._in_trouble = False
        self._synced_at = 0.0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Opens the files and starts writing. Earlier notes are written first. A full disk is retried."""
        with self._writing:
            self._open()
        self._thread = threading.Thread(target=self._write_loop, name="audit", daemon=True)
        self._thread.start()

    def note(self, kind: AuditKind, facts: JsonObject, trace_id: str | None = None) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            self._lost += 1
            self._lost_since = self._lost_since or timestamp_now()
            return
        self._waiting.append(AuditNote(kind, dict(facts), timestamp_now(), trace_id))
        if kind in _IMMEDIATE_KINDS and self._thread is not None and self._writing.acquire(timeout=_LOCK_SECONDS):
            try:
                self._write()
            finally:
                self._writing.release()
        self._something.set()

    def stop(self, seconds: float = 5.0) -> None:
        self._over.set()
        self._something.set()
        if self._thread is not None:
            self._thread.join(seconds)
            self._thread = None
            with self._writing:
                self._write()
                if self._opened:
                    self._chain.close()
        if self._waiting:
            _log.error("%d records of the audit could not be written", len(self._waiting))

    def flush(self) -> None:
        """Syncs all notes to disk; raises StorageTrouble if that fails."""
        with self._writing:
            if not self._write() or not self._sync():
                raise StorageTrouble("The audit can not be written.", hint="Free some disk space.")

    def _write_loop(self) -> None:
        while not self._over.is_set():
            self._something.wait(self._wait_seconds())
            busy = self._something.is_set()
            self._something.clear()
            with self._writing:
                written = self._write()
                # Not after every record: a sync costs more than writing all records of a second.
                rested = not busy or time.monotonic() > self._synced_at + _SYNC_AT_LATEST_SECONDS
                if written and rested and self._chain.unsynced:
                    self._sync()
            if not written:
                self._over.wait(_RETRY_SECONDS)

    def _wait_seconds(self) -> float | None:
        if self._in_trouble:
            return _RETRY_SECONDS
        return _SYNC_SECONDS if self._chain.unsynced else None

    def _open(self) -> bool:
        if not self._opened:
            try:
                self._chain.open()
            except AlreadyRunning:
                raise
            except StorageTrouble as trouble:
                self._trouble(trouble.message.rstrip("."))
                return False
            self._opened = True
        return True

    def _write(self) -> bool:
        """Writes all queued notes and returns whether that succeeded."""
        if not self._open():
            return False
        while self._waiting or self._lost:
            batch = self._take_gap_note() + [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            try:
                self._chain.append(batch)
            except OSError as error:
                self._put_back(batch)
                self._trouble(error.strerror or "unknown reason")
                return False
        self._trouble(None)
        return True

    def _take_gap_note(self) -> list[AuditNote]:
        lost, since = self._lost, self._lost_since
        if not lost:
            return []
        self._lost, self._lost_since = 0, None
        return [AuditNote.about_audit("gap", lost=lost, since=since)]

    def _put_back(self, batch: list[AuditNote]) -> None:
        for note in reversed(batch):
            if note.kind == "audit" and note.facts.get("event") == "gap":
                self._lost += int(str(note.facts["lost"]))
                self._lost_since = str(note.facts["since"])
            else:
                self._waiting.appendleft(note)

    def _sync(self) -> bool:
        try:
            self._chain.sync()
        except OSError as error:
            self._trouble(error.strerror or "unknown reason")
            return False
        self._synced_at = time.monotonic()
        return True

    def _trouble(self, reason: str | None) -> None:
        if reason is None:
            if self._in_trouble:
                self._in_trouble = False
                self._on_trouble(None)
            return
        lost = f" {self._lost} are lost." if self._lost else ""
        self._in_trouble = True
        self._on_trouble(
            f"The audit can not be written: {reason}. {len(self._waiting)} records wait for it.{lost} Free some space."
        )
