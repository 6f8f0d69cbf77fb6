"""Configuration of the code server."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from annabelle.servers.kit import own_settings
from annabelle.servers.kit.files.config import FilesConfig

MOST_SHOWN_CHARS = 200_000
"""Upper bound for one stream, whatever the settings say."""

IsolationChoice = Literal["auto", "bubblewrap", "seatbelt", "container"]


@dataclass(frozen=True, slots=True)
class RunLimits:
    default_seconds: float = 30.0
    max_seconds: float = 300.0
    output_chars: int = 10_000
    processes: int = 64
    memory_mb: int = 1_024
    file_bytes: int = 52_428_800

    @property
    def memory_bytes(self) -> int:
        return self.memory_mb * 1_048_576

    @property
    def disk_bytes(self) -> int:
        """Limit for all files of a private folder together."""
        return self.file_bytes * 10


@dataclass(frozen=True, slots=True)
class PackageLimits:
    """Disk limits for installed packages: per agent, script or session, and in total."""

    mb: int = 2_048
    total_mb: int = 8_192

    @property
    def bytes(self) -> int:
        return self.mb * 1_048_576

    @property
    def total_bytes(self) -> int:
        return self.total_mb * 1_048_576


@dataclass(frozen=True, slots=True)
class CodeConfig:
    files: FilesConfig
    limits: RunLimits = RunLimits()
    packages: PackageLimits = PackageLimits()
    isolation: IsolationChoice = "auto"
    engine: str = ""
    image: str = ""
    network: bool = False
    max_sessions: int = 5
    idle_seconds: float = 900.0
    pip_index: str = field(default="", repr=False)
    npm_registry: str = field(default="", repr=False)

    @property
    def data(self) -> Path:
        return self.files.home.data / "codexec"

    @classmethod
    def from_environment(cls) -> CodeConfig:
        settings = own_settings()
        longest = settings.codexec_max_timeout_ms / 1000
        return cls(
            files=FilesConfig.from_environment(),
            limits=RunLimits(
                default_seconds=min(settings.codexec_default_timeout_ms / 1000, longest),
                max_seconds=longest,
                output_chars=min(settings.codexec_max_output_chars, MOST_SHOWN_CHARS),
                processes=settings.codexec_max_processes,
                memory_mb=settings.codexec_max_memory_mb,
                file_bytes=settings.codexec_max_file_size_bytes,
            ),
            packages=PackageLimits(settings.codexec_max_packages_mb, settings.codexec_max_packages_total_mb),
            isolation=settings.codexec_isolation,
            engine=settings.codexec_container_engine.strip(),
            image=settings.codexec_container_image.strip(),
            network=settings.codexec_network,
            max_sessions=settings.codexec_max_sessions,
            idle_seconds=settings.codexec_session_idle_seconds,
            pip_index=settings.codexec_pip_index_url.strip(),
            npm_registry=settings.codexec_npm_registry.strip(),
        )
