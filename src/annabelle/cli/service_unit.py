"""What a service manager is told about Annabelle: a systemd unit or a launchd job. No secret ever stands in it."""

from __future__ import annotations

import plistlib
import re
from dataclasses import dataclass
from pathlib import Path
from xml.parsers.expat import ExpatError

from annabelle.core.errors import AlreadyRunning, CallerMistake, OperatorMistake
from annabelle.core.home import HOME_VARIABLE

LABEL = "annabelle"
LAUNCHD_LABEL = "local.annabelle.hub"
# Five starts within five minutes: a hub that can not run must not be started for ever.
RESTART_SECONDS, BURST, BURST_SECONDS = 5, 5, 300
# Starting again helps neither a mistaken setting nor a home that another process owns.
HOPELESS = (OperatorMistake.exit_code, AlreadyRunning.exit_code)


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """What is started, for whom, and how long it may take to stop. `user` is named only in a unit of the system."""

    python: str
    home: Path
    search_path: str
    stop_seconds: int
    user: str | None = None

    @property
    def argv(self) -> list[str]:
        """The hub itself, in the foreground, with the Python of this install; -P imports nothing from the home."""
        return [self.python, "-P", "-m", "annabelle.hub"]

    @property
    def environment(self) -> dict[str, str]:
        """Servers the user has added are found through the search path; everything else is in the home."""
        return {HOME_VARIABLE: str(self.home), "PATH": self.search_path}


def systemd_unit(plan: ServicePlan, *, system: bool) -> str:
    """The unit file: of the system for root, of the user for everyone else."""
    lines = [
        "# Made by `annabelle service install`; `annabelle service remove` takes it away again.",
        "[Unit]",
        "Description=Annabelle, a personal AI assistant",
        *(["After=network-online.target", "Wants=network-online.target"] if system else []),
        f"StartLimitIntervalSec={BURST_SECONDS}",
        f"StartLimitBurst={BURST}",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(_command_word(word) for word in plan.argv)}",
        f"WorkingDirectory={_specifier_safe(str(plan.home))}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in plan.environment.items()),
        *([f"User={plan.user}"] if system and plan.user else []),
        "Restart=on-failure",
        f"RestartSec={RESTART_SECONDS}",
        f"RestartPreventExitStatus={' '.join(str(code) for code in HOPELESS)}",
        # The hub winds down its own children; only what is left of them is killed.
        "KillMode=mixed",
        f"TimeoutStopSec={plan.stop_seconds}",
        "UMask=0077",
        "NoNewPrivileges=yes",
        "",
        "[Install]",
        f"WantedBy={'multi-user' if system else 'default'}.target",
    ]
    return "\n".join(lines) + "\n"


def launchd_job(plan: ServicePlan, *, system: bool) -> str:
    """The property list: an agent of the user, or a daemon for root."""
    job: dict[str, object] = {
        "Label": LAUNCHD_LABEL,
        "ProgramArguments": plan.argv,
        "WorkingDirectory": str(plan.home),
        "EnvironmentVariables": plan.environment,
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        # launchd knows no limit on starts, so the pause between two is longer.
        "ThrottleInterval": 6 * RESTART_SECONDS,
        "ExitTimeOut": plan.stop_seconds,
        "Umask": 0o077,
    }
    if system and plan.user:
        job["UserName"] = plan.user
    return plistlib.dumps(job).decode()


def home_of_unit(text: str) -> str | None:
    """The home an installed unit serves; None when it does not say."""
    found = re.search(rf'^Environment="{HOME_VARIABLE}=(.*)"$', text, re.MULTILINE)
    return re.sub(r"\\(.)|%(%)", r"\1\2", found[1]) if found else None


def home_of_job(text: str) -> str | None:
    """The home an installed launchd job serves; None when it does not say."""
    try:
        job = plistlib.loads(text.encode())
        return str(job["EnvironmentVariables"][HOME_VARIABLE])
    except (plistlib.InvalidFileException, ExpatError, KeyError, TypeError):
        return None


def _specifier_safe(text: str) -> str:
    if not text.isprintable():
        raise CallerMistake(f"A service can not be made for {text!r}: the name has invisible characters in it.")
    return text.replace("%", "%%")


def _quoted(text: str) -> str:
    escaped = _specifier_safe(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _command_word(text: str) -> str:
    """A word of ExecStart, where a dollar would begin a variable."""
    return _quoted(text).replace("$", "$$") if re.search(r"[^\w./+@:-]", text) else text
