"""Where the Telegram server finds its account and keeps what it knows between starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from annabelle.core.home import Home
from annabelle.servers.kit.files.config import FilesConfig


@dataclass(frozen=True, slots=True)
class TelegramConfig:
    """The home, the workspace, and how long an unused connection stays open."""

    home: Home
    files: FilesConfig
    idle_seconds: float = 600

    @classmethod
    def from_environment(cls) -> TelegramConfig:
        return cls(Home.from_environment(), FilesConfig.from_environment())

    @property
    def subscriptions_file(self) -> Path:
        return self.home.data / "telegram" / "subscriptions.json"
