"""Settings of the browser server, and discovery of the browser program."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from annabelle.core.errors import Unavailable
from annabelle.core.home import Home
from annabelle.servers.kit import own_settings
from annabelle.servers.kit.files.config import FilesConfig
from annabelle.servers.kit.host_access import AllowedPrivateHosts


@dataclass(frozen=True, slots=True)
class BrowserTimeouts:
    """Timeouts in seconds."""

    action: float = 10
    navigation: float = 30
    settle: float = 3
    """Wait for effects of an action, such as page loads and downloads."""
    dialog: float = 60
    """Time until an open dialog is dismissed."""
    start: float = 45
    queue: float = 60
    """Wait for another call of the same agent."""


@dataclass(frozen=True, slots=True)
class BrowserConfig:
    profiles: Path
    files: FilesConfig
    path: Path | None = None
    headless: bool = True
    idle_seconds: float = 600
    exceptions: AllowedPrivateHosts = field(default_factory=AllowedPrivateHosts)
    timeouts: BrowserTimeouts = field(default_factory=BrowserTimeouts)

    @classmethod
    def from_environment(cls) -> BrowserConfig:
        settings = own_settings()
        return cls(
            profiles=Home.from_environment().data / "browser",
            files=FilesConfig.from_environment(),
            path=settings.browser_path.expanduser().absolute() if settings.browser_path else None,
            headless=settings.browser_headless,
            idle_seconds=settings.browser_idle_seconds,
            exceptions=AllowedPrivateHosts.parse(settings.private_hosts_allowed),
        )


_COMMANDS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "microsoft-edge",
    "microsoft-edge-stable",
    "chrome",
    "msedge",
)
_MAC = (
    "Google Chrome.app/Contents/MacOS/Google Chrome",
    "Chromium.app/Contents/MacOS/Chromium",
    "Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
)
_WINDOWS = (
    "Google/Chrome/Application/chrome.exe",
    "Chromium/Application/chrome.exe",
    "Microsoft/Edge/Application/msedge.exe",
)

_HOW = {
    "linux": "Install one (Debian, Ubuntu: apt-get install chromium; Fedora: dnf install chromium)",
    "darwin": "Install one (brew install --cask google-chrome)",
    "win32": "Install one (winget install Google.Chrome)",
}


def find_browser(configured: Path | None) -> Path:
    """Path of the browser program. Raises Unavailable with install instructions."""
    if configured is not None:
        if not _is_executable(configured):
            raise Unavailable(
                "BROWSER_PATH names no program that can be run.",
                hint="Set it to the program of Chromium or Chrome, or unset it to use the one found on this machine.",
            )
        return configured
    found = next((path for path in _candidates() if _is_executable(path)), None)
    if found is None:
        how = _HOW.get(sys.platform, "Install Chromium or Chrome")
        raise Unavailable("No Chromium, Chrome or Edge was found.", hint=f"{how}, or set BROWSER_PATH to its program.")
    return found


def require_driver() -> None:
    if importlib.util.find_spec("playwright") is None:
        raise Unavailable(
            "The package that steers the browser is not installed.", hint="Run: pip install 'annabelle[browser]'"
        )


def describe_missing(configured: Path | None) -> str | None:
    """Why a browser cannot start, in one sentence, or None."""
    try:
        require_driver()
        find_browser(configured)
    except Unavailable as error:
        return f"{error.message} {error.hint or ''}".strip()
    return None


def _candidates() -> Iterator[Path]:
    for command in _COMMANDS:
        if (found := shutil.which(command)) is not None:
            yield Path(found)
    if sys.platform == "darwin":
        for folder in (Path("/Applications"), Path.home() / "Applications"):
            yield from (folder / name for name in _MAC)
    if sys.platform == "win32":
        for variable in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
            if base := os.environ.get(variable):
                yield from (Path(base) / name for name in _WINDOWS)


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
