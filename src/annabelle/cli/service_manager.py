"""The service manager of this machine: where its files are, and the commands that make it act on them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from annabelle.cli.service_unit import (
    LABEL,
    LAUNCHD_LABEL,
    ServicePlan,
    home_of_job,
    home_of_unit,
    launchd_job,
    systemd_unit,
)
from annabelle.core.errors import OperatorMistake, Unavailable

COMMAND_SECONDS = 60.0
_AWAKE = {"initializing", "starting", "running", "degraded", "maintenance"}

Argv = list[str]


class ServiceManager(Protocol):
    """What `annabelle service` needs of systemd or launchd."""

    @property
    def name(self) -> str: ...
    @property
    def file(self) -> Path: ...
    def text(self, plan: ServicePlan) -> str: ...
    def home_in(self, text: str) -> str | None: ...
    def works(self) -> bool: ...
    def enable(self) -> list[Argv]: ...
    def start(self) -> list[Argv]: ...
    def disable(self) -> list[Argv]: ...
    def forget(self) -> list[Argv]: ...
    def state(self) -> str: ...
    def advice(self) -> str | None: ...


@dataclass(frozen=True, slots=True)
class Systemd:
    """systemd: a unit of the system for root, of the user for everyone else."""

    system: bool

    @property
    def name(self) -> str:
        return "systemd"

    @property
    def file(self) -> Path:
        configured = os.environ.get("XDG_CONFIG_HOME") or ""
        config = Path(configured) if configured.startswith("/") else Path.home() / ".config"
        folder = Path("/etc/systemd/system") if self.system else config / "systemd" / "user"
        return folder / self._unit

    @property
    def _unit(self) -> str:
        return f"{LABEL}.service"

    def _command(self, *words: str) -> Argv:
        return ["systemctl", *([] if self.system else ["--user"]), *words]

    def text(self, plan: ServicePlan) -> str:
        return systemd_unit(plan, system=self.system)

    def home_in(self, text: str) -> str | None:
        return home_of_unit(text)

    def works(self) -> bool:
        """In a container the program often exists while nothing listens to it."""
        return shutil.which("systemctl") is not None and said(self._command("is-system-running")) in _AWAKE

    def enable(self) -> list[Argv]:
        return [self._command("daemon-reload"), self._command("enable", self._unit)]

    def start(self) -> list[Argv]:
        return [self._command("restart", self._unit)]

    def disable(self) -> list[Argv]:
        return [self._command("disable", "--now", self._unit)]

    def forget(self) -> list[Argv]:
        return [self._command("daemon-reload")]

    def state(self) -> str:
        return said(self._command("is-active", self._unit)) or "unknown"

    def advice(self) -> str | None:
        user = owner_of(Path.home())
        if self.system or Path("/var/lib/systemd/linger", user).exists():
            return None
        return f"It runs while you are logged in. To let it run always: loginctl enable-linger {user}"


@dataclass(frozen=True, slots=True)
class Launchd:
    """launchd: a daemon for root, an agent of the user for everyone else."""

    system: bool

    @property
    def name(self) -> str:
        return "launchd"

    @property
    def file(self) -> Path:
        folder = Path("/Library/LaunchDaemons") if self.system else Path.home() / "Library" / "LaunchAgents"
        return folder / f"{LAUNCHD_LABEL}.plist"

    @property
    def _domain(self) -> str:
        return "system" if self.system else f"gui/{os.getuid()}"

    def text(self, plan: ServicePlan) -> str:
        return launchd_job(plan, system=self.system)

    def home_in(self, text: str) -> str | None:
        return home_of_job(text)

    def works(self) -> bool:
        return shutil.which("launchctl") is not None

    def enable(self) -> list[Argv]:
        # A job that is loaded already would refuse its new file.
        return [*self.disable(), ["launchctl", "bootstrap", self._domain, str(self.file)]]

    def start(self) -> list[Argv]:
        return [["launchctl", "kickstart", f"{self._domain}/{LAUNCHD_LABEL}"]]

    def disable(self) -> list[Argv]:
        return [] if self.state() == "inactive" else [["launchctl", "bootout", f"{self._domain}/{LAUNCHD_LABEL}"]]

    def forget(self) -> list[Argv]:
        return []

    def state(self) -> str:
        shown = said(["launchctl", "print", f"{self._domain}/{LAUNCHD_LABEL}"]) if self.works() else ""
        if not shown:
            return "inactive"
        return "active" if "state = running" in shown else "loaded"

    def advice(self) -> str | None:
        return None


def service_manager() -> ServiceManager:
    """The one this machine has."""
    system = os.geteuid() == 0
    if sys.platform == "darwin":
        return Launchd(system)
    if sys.platform.startswith("linux"):
        return Systemd(system)
    raise OperatorMistake(
        f"Services are made for systemd and launchd only, and {sys.platform} has neither.",
        hint="Let the service manager here run: annabelle </dev/null",
    )


def owner_of(path: Path) -> str:
    """The name of whoever owns a folder; the number where the machine has no name for it."""
    try:
        return path.owner()
    except KeyError:
        return str(path.stat().st_uid)


def said(argv: Argv) -> str:
    """What a command answers on stdout; nothing when it can not be run."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def act(argv: Argv) -> None:
    """Run a command of the service manager; its own words when it refuses."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"`{' '.join(argv)}` could not be run: {error}.") from error
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise Unavailable(
            f"`{' '.join(argv)}` failed: {words}", hint="Once that is solved, run the same command again."
        )
