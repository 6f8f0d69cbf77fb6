"""The one door to the disk: every operation runs in a thread, is explained when it fails, and is written down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from annabelle.core.errors import AnnabelleError
from annabelle.servers.filer.audit import Audit
from annabelle.servers.filer.housekeeping import clean_temp
from annabelle.servers.kit import StopSign, in_thread
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.places import Places
from annabelle.servers.kit.files.trouble import explain
from annabelle.servers.kit.files.workspace import make_workspace

T = TypeVar("T")

_CLEAN_EVERY_SECONDS = 6 * 3600.0


class Desk:
    """What the tools share: the places, the audit log, and the way to do a piece of work on the disk."""

    def __init__(self, config: FilesConfig) -> None:
        self.config = config
        self.places = Places(config)
        self.audit = Audit(config.audit_file)
        self._cleaned_at: float | None = None
        self._lock = threading.Lock()

    async def perform(
        self,
        operation: str,
        path: str,
        work: Callable[[Walker, StopSign], T],
        *,
        destination: str | None = None,
        audited: bool = True,
    ) -> T:
        """Do the work in a thread. `path` is what the caller wrote, for the log and for the sentence of an error."""

        def inside(stop: StopSign) -> T:
            result, detail = "cancelled", None
            try:
                self._prepare()
                outcome = work(Walker(self.places), stop)
                result = "ok"
            except AnnabelleError as error:
                result, detail = error.code, error.message
                raise
            except OSError as error:
                explained = explain(error, path)
                result, detail = explained.code, explained.message
                raise explained from error
            except Exception:
                result = "internal_error"
                raise
            finally:
                if audited:
                    self.audit.record(operation, path, destination, result, detail)
            return outcome

        return await in_thread(inside)

    def _prepare(self) -> None:
        """Make the workspace at first use, and clean its temp folder now and then."""
        with self._lock:
            make_workspace(self.places.workspace.path)
            due = self._cleaned_at is None or time.monotonic() - self._cleaned_at > _CLEAN_EVERY_SECONDS
            if due:
                self._cleaned_at = time.monotonic()
                clean_temp(Walker(self.places), self.places.workspace, self.config.cleanup_days)
