"""What the browser server is told by its environment."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from annabelle.core.home import Home
from annabelle.servers.kit import own_settings
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.net.addresses import Exceptions


@dataclass(frozen=True, slots=True)
class Patience:
    """How long each thing may take, in seconds."""

    action: float = 10
    navigation: float = 30
    settle: float = 3
    """How long an action waits for what it set off: a page that loads, a file that comes down."""
    dialog: float = 60
    """How long a dialog stays open before it is dismissed."""
    start: float = 45
    queue: float = 60
    """How long a call waits for another call of the same agent."""


@dataclass(frozen=True, slots=True)
class BrowserConfig:
    """Which browser, where its profiles are, and what it may reach."""

    profiles: Path
    files: FilesConfig
    path: Path | None = None
    headless: bool = True
    idle_seconds: float = 600
    exceptions: Exceptions = field(default_factory=Exceptions)
    patience: Patience = field(default_factory=Patience)

    @classmethod
    def from_environment(cls) -> BrowserConfig:
        settings = own_settings()
        return cls(
            profiles=Home.from_environment().data / "browser",
            files=FilesConfig.from_environment(),
            path=settings.browser_path.expanduser().absolute() if settings.browser_path else None,
            headless=settings.browser_headless,
            idle_seconds=settings.browser_idle_seconds,
            exceptions=Exceptions.parse(settings.private_hosts_allowed),
        )
