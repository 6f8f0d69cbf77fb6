"""Host and Origin checks: a web page on another site can neither rebind a name to the hub nor call it (I-01)."""

from __future__ import annotations

from dataclasses import dataclass

from annabelle.core.errors import NotAllowed
from annabelle.core.settings import Settings


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip().lower().rstrip("/") for name in text.split(",") if name.strip())


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host[: host.find("]") + 1]
    return host.partition(":")[0]


@dataclass(frozen=True, slots=True)
class Addresses:
    """The host names a request may be addressed to, and the origins a browser page may call from."""

    hosts: frozenset[str]
    origins: frozenset[str]

    @classmethod
    def from_settings(cls, settings: Settings) -> Addresses:
        return cls(_names(settings.annabelle_allowed_hosts), _names(settings.annabelle_cors_origins))

    def check_host(self, host: bytes | None) -> None:
        if host is None or _without_port(host.decode("latin-1").lower()) not in self.hosts:
            raise NotAllowed(
                "This host name is not served here.",
                hint="Address the hub as 127.0.0.1 or localhost, or add the name to ANNABELLE_ALLOWED_HOSTS.",
            )

    def check_origin(self, origin: bytes, host: bytes | None) -> bool:
        """Refuse a foreign origin; True when the page is foreign and was let in by a setting (CORS)."""
        name = origin.decode("latin-1").lower().rstrip("/")
        if name in self.origins:
            return True
        # The hub's own pages: the host was checked before, so it can be trusted here.
        if host is not None and name == f"http://{host.decode('latin-1').lower()}":
            return False
        raise NotAllowed(
            "Pages of this origin may not call Annabelle.", hint="Add the origin to ANNABELLE_CORS_ORIGINS to allow it."
        )
