"""Opens the audit of a home for the hub that runs in it, and tells its owner when it can not be written."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Final

from annabelle import __version__
from annabelle.core.home import Home
from annabelle.core.redact import Redactor
from annabelle.core.settings import Settings
from annabelle.hub.notices import Notices
from annabelle.store.audit.chain import Chain, Limits
from annabelle.store.audit.places import AuditPlaces
from annabelle.store.audit.writer import AuditWriter

TOPIC: Final = "audit"


def open_audit(home: Home, settings: Settings, redact: Redactor, notices: Notices) -> AuditWriter:
    """The audit, begun with what this hub was started from: a file that changed meanwhile has another fingerprint."""
    loop = asyncio.get_running_loop()

    def tell(text: str | None) -> None:
        if text is None:
            notices.clear(TOPIC)
        else:
            notices.add(TOPIC, text, level="error")

    def trouble(text: str | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(tell, text)

    limits = Limits(settings.audit_max_bytes, settings.audit_keep_files)
    audit = AuditWriter(Chain(AuditPlaces.of(home), limits, redact), trouble)
    audit.start()
    audit.note("server", {"event": "start", "server": "hub", "version": __version__})
    audit.note("config", {"event": "in_force", "files": _fingerprints(home, settings)})
    return audit


def close_audit(audit: AuditWriter) -> None:
    """The last record of a hub that ends in good order; one without it was killed."""
    audit.note("server", {"event": "stop", "server": "hub"})
    audit.stop()


def _fingerprints(home: Home, settings: Settings) -> dict[str, object]:
    files = {
        "settings": home.settings_file,
        "agents": settings.agents_config_path or home.agents_file,
        "users": home.users_file,
        "external": settings.external_mcps_path or home.config / "external-mcps.json",
    }
    found: dict[str, object] = {}
    for name, path in files.items():
        try:
            found[f"{name}_hash"] = hashlib.sha256(path.read_bytes()).hexdigest()
        except OSError:
            continue  # most homes have only some of them
    return found
