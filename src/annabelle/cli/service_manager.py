"""systemd and launchd: the unit or job for Annabelle, without secrets, and the commands that manage it."""

from __future__ import annotations

import os
import plistlib
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar
from xml.parsers.expat import ExpatError

from annabelle.core.errors import AlreadyRunning, CallerMistake, OperatorMistake, Unavailable
from annabelle.core.home import HOME_VARIABLE, HUB_ARGUMENTS

LABEL = "annabelle"
LAUNCHD_LABEL = "local.annabelle.hub"
# At most five starts within five minutes, so that a broken hub is not restarted forever.
RESTART_SECONDS, BURST, BURST_SECONDS = 5, 5, 300
# A restart fixes neither a wrong setting nor a home that another process owns.
HOPELESS = (OperatorMistake.exit_code, AlreadyRunning.exit_code)


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What to start, and how long it may take to stop. `user` is used in system units only."""

    python: str
    home: Path
    search_path: str
    stop_seconds: int
    user: str | None = None

    @property
    def argv(self) -> list[str]:
        """The hub in the foreground with this Python; -P imports nothing from the home."""
        return [self.python, *HUB_ARGUMENTS]

    @property
    def environment(self) -> dict[str, str]:
        """PATH finds servers the user has added; everything else is in the home."""
        return {HOME_VARIABLE: str(self.home), "PATH": self.search_path}


def _specifier_safe(text: str) -> str:
    if not text.isprintable():
        raise CallerMistake(f"A service can not be made for {text!r}: the name has invisible characters in it.")
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    escaped = _specifier_safe(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _command_word(text: str) -> str:
    """Escape a word of ExecStart, where a dollar sign starts a variable."""
    return _quoted(text).replace("$", "$$") if re.search(r"[^\w./+@:-]", text) else text


COMMAND_SECONDS = 60.0
_AWAKE = {"initializing", "starting", "running", "degraded", "maintenance"}

Argv = list[str]


@dataclass(frozen=True, slots=True)
class Systemd:
    """A system unit for root, otherwise a user unit."""

    system: bool
    name: ClassVar = "systemd"

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

    def render(self, plan: ServicePlan) -> str:
        """The unit file."""
        lines = [
            "# Made by `annabelle service install`; `annabelle service remove` takes it away again.",
            "[Unit]",
            "Description=Annabelle, a personal AI assistant",
            *(["After=network-online.target", "Wants=network-online.target"] if self.system else []),
            f"StartLimitIntervalSec={BURST_SECONDS}",
            f"StartLimitBurst={BURST}",
            "",
            "[Service]",
            "Type=exec",
            f"ExecStart={' '.join(_command_word(word) for word in plan.argv)}",
            f"WorkingDirectory={_specifier_safe(str(plan.home))}",
            *(f"Environment={_quoted(f'{name}={value}')}" for name, value in plan.environment.items()),
            *([f"User={plan.user}"] if self.system and plan.user else []),
            "Restart=on-failure",
            f"RestartSec={RESTART_SECONDS}",
            f"RestartPreventExitStatus={' '.join(str(code) for code in HOPELESS)}",
            # The hub stops its own children; only those left are killed.
            "KillMode=mixed",
            f"TimeoutStopSec={plan.stop_seconds}",
            "UMask=0077",
            "NoNewPrivileges=yes",
            "",
            "[Install]",
            f"WantedBy={'multi-user' if self.system else 'default'}.target",
        ]
        return "\n".join(lines) + "\n"

    def home_in(self, text: str) -> str | None:
        """The home an installed unit serves, or None."""
        found = re.search(rf'^Environment="{HOME_VARIABLE}=(.*)"$', text, re.MULTILINE)
        return re.sub(r"\\(.)|%(%)", r"\1\2", found[1]) if found else None

    def is_available(self) -> bool:
        """In containers systemctl often exists although systemd does not run."""
        return shutil.which("systemctl") is not None and read_command(self._command("is-system-running")) in _AWAKE

    def enable(self) -> list[Argv]:
        return [self._command("daemon-reload"), self._command("enable", self._unit)]

    def start(self) -> list[Argv]:
        return [self._command("restart", self._unit)]

    def disable(self) -> list[Argv]:
        return [self._command("disable", "--now", self._unit)]

    def forget(self) -> list[Argv]:
        return [self._command("daemon-reload")]

    def state(self) -> str:
        return read_command(self._command("is-active", self._unit)) or "unknown"

    def advice(self) -> str | None:
        user = owner_of(Path.home())
        if self.system or Path("/var/lib/systemd/linger", user).exists():
            return None
        return f"It runs while you are logged in. To let it run always: loginctl enable-linger {user}"


@dataclass(frozen=True, slots=True)
class Launchd:
    """A daemon for root, otherwise a user agent."""

    system: bool
    name: ClassVar = "launchd"

    @property
    def file(self) -> Path:
        folder = Path("/Library/LaunchDaemons") if self.system else Path.home() / "Library" / "LaunchAgents"
        return folder / f"{LAUNCHD_LABEL}.plist"

    @property
    def _domain(self) -> str:
        return "system" if self.system else f"gui/{os.getuid()}"

    def render(self, plan: ServicePlan) -> str:
        """The property list."""
        job: dict[str, object] = {
            "Label": LAUNCHD_LABEL,
            "ProgramArguments": plan.argv,
            "WorkingDirectory": str(plan.home),
            "EnvironmentVariables": plan.environment,
            "RunAtLoad": True,
            "KeepAlive": {"SuccessfulExit": False},
            # launchd has no start limit, so pause longer between starts.
            "ThrottleInterval": 6 * RESTART_SECONDS,
            "ExitTimeOut": plan.stop_seconds,
            "Umask": 0o077,
        }
        if self.system and plan.user:
            job["UserName"] = plan.user
        return plistlib.dumps(job).decode()

    def home_in(self, text: str) -> str | None:
        """The home an installed job serves, or None."""
        try:
            job = plistlib.loads(text.encode())
            return str(job["EnvironmentVariables"][HOME_VARIABLE])
        except (plistlib.InvalidFileException, ExpatError, KeyError, TypeError):
            return None

    def is_available(self) -> bool:
        return shutil.which("launchctl") is not None

    def enable(self) -> list[Argv]:
        # launchd refuses the new file of a job that is already loaded.
        return [*self.disable(), ["launchctl", "bootstrap", self._domain, str(self.file)]]

    def start(self) -> list[Argv]:
        return [["launchctl", "kickstart", f"{self._domain}/{LAUNCHD_LABEL}"]]

    def disable(self) -> list[Argv]:
        return [] if self.state() == "inactive" else [["launchctl", "bootout", f"{self._domain}/{LAUNCHD_LABEL}"]]

    def forget(self) -> list[Argv]:
        return []

    def state(self) -> str:
        shown = read_command(["launchctl", "print", f"{self._domain}/{LAUNCHD_LABEL}"]) if self.is_available() else ""
        if not shown:
            return "inactive"
        return "active" if "state = running" in shown else "loaded"

    def advice(self) -> str | None:
        return None


ServiceManager = Systemd | Launchd


def service_manager() -> ServiceManager:
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
    """The owner's user name, or the uid if it has no name."""
    try:
        return path.owner()
    except KeyError:
        return str(path.stat().st_uid)


def read_command(argv: Argv) -> str:
    """The command's stdout, or "" if it cannot be run."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip()


def run_command(argv: Argv) -> None:
    """Run a service manager command; raises Unavailable with its message if it fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=COMMAND_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"`{' '.join(argv)}` could not be run: {error}.") from error
    if done.returncode != 0:
        words = " ".join((done.stderr or done.stdout).split()) or f"exit code {done.returncode}"
        raise Unavailable(
            f"`{' '.join(argv)}` failed: {words}", hint="Once that is solved, run the same command again."
        )
