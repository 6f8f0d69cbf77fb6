"""The folder that holds one install: `ANNABELLE_HOME`, by default `~/.annabelle`."""

from __future__ import annotations

import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import OperatorMistake, explain_os_error

HOME_VARIABLE = "ANNABELLE_HOME"
HUB_ARGUMENTS = ("-P", "-m", "annabelle.hub")
"""What Python is given to run the hub. -P: the home is the working folder, and nothing in it may be imported."""


class HomePath:
    """A path below the root of a home."""

    def __init__(self, *parts: str) -> None:
        self._parts = parts

    def __get__(self, home: Home, _class: type[Home] | None = None) -> Path:
        return home.root.joinpath(*self._parts)


@dataclass(frozen=True, slots=True)
class Home:
    """Paths of one install. Every path that several packages use is defined here."""

    root: Path

    config = HomePath("config")
    data = HomePath("data")
    logs = HomePath("logs")
    run = HomePath("run")
    """Sockets, pid files and locks of the running hub."""
    agents = HomePath("agents")
    skills = HomePath("skills")
    """Skills written by others, each a folder with a SKILL.md."""
    playbooks = HomePath("playbooks")
    """Instructions for kinds of requests, as Markdown the user may edit."""
    documentation = HomePath("documentation")
    """The pages on how to use Annabelle, of the version that runs."""
    phrases_file = HomePath("config", "phrases.toml")
    """Ways to ask for tools that the user has added (FST-02)."""
    models = HomePath("models")
    backups = HomePath("backups")
    workspace = HomePath("workspace")
    connections = HomePath("connections")
    """Connected accounts, each in a file that only its owner can read."""
    token_file = HomePath("annabelle.token")
    history_file = HomePath("run", "history")
    """Input history of the terminal chat."""
    settings_file = HomePath("config", "settings.env")
    agents_file = HomePath("config", "agents.json")
    good_agents_file = HomePath("data", "agents.last-good.json")
    """The last valid agents.json, used while the current one is invalid."""
    database_file = HomePath("data", "annabelle.db")
    flows_file = HomePath("data", "flows.db")
    memory_file = HomePath("data", "memory.db")
    memory_export = HomePath("memory-export")
    """Memories as Markdown that a person can read, edit and import again."""
    embedding_cache = HomePath("data", "embeddings")
    browser_profiles = HomePath("data", "browser")
    """Browser profiles, one folder per agent."""
    users_file = HomePath("config", "users.json")
    token_uses_file = HomePath("data", "token-uses.json")
    """When each token was used last, by its hash."""
    forgetting_file = HomePath("data", "forgetting.json")
    """Forget requests in progress, so that a killed hub finishes them after its restart."""
    forgotten_file = HomePath("logs", "forgotten.jsonl")
    """Log of forget requests: when, by whom and where. The text itself is stored only as a keyed hash."""
    audit_key_file = HomePath("data", "audit.key")
    audit_file = HomePath("logs", "audit.jsonl")
    """Log of actions and decisions; each line is chained to the previous one."""
    audit_head_file = HomePath("data", "audit.head")
    """Latest position of the audit, stored apart from it so that a cut-off tail is noticed."""
    halts_file = HomePath("data", "stopped.json")
    """What the owner stopped. It stays stopped across restarts until resumed."""
    pins_file = HomePath("data", "pinned-servers.json")
    """State of the external servers when the user accepted them."""
    skill_pins_file = HomePath("data", "pinned-skills.json")
    """Hashes of the skills the user installed, kept apart from them: a skill must not vouch for itself."""
    known_servers_file = HomePath("last-known-mcps.json")
    traces_file = HomePath("logs", "traces.jsonl")
    error_baseline_file = HomePath("data", "error-baseline.json")
    """How many errors and warnings the logs got in the hours of the last week."""
    last_diagnosis_file = HomePath("data", "last-diagnosis.jsonl")
    """What the last health report found."""
    time_zone_file = HomePath("data", "time-zone")
    """The time zone of the person at the last start, in which their schedules are."""
    hub_file = HomePath("run", "hub.json")
    """Pid, address and version of the running hub, for commands that look for it."""
    restore_file = HomePath("run", "restore")
    """Name of the backup that the next start restores."""

    @classmethod
    def from_environment(cls) -> Home:
        return cls(Path(os.environ.get(HOME_VARIABLE) or "~/.annabelle").expanduser().absolute())

    def prepare(self) -> Home:
        """Creates the required folders; OperatorMistake if the home is not writable."""
        with explain_os_error(
            OperatorMistake,
            f"The home {self.root} can not be written",
            hint=f"Free space or fix its permissions, or set {HOME_VARIABLE} to a folder you own.",
        ):
            for folder in (self.root, self.data, self.logs, self.agents, self.config, self.run):
                folder.mkdir(parents=True, exist_ok=True)
            self.root.chmod(0o700)
            probe = self.run / f".writable-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        return self

    def agent(self, agent_id: str) -> Path:
        return self.agents / agent_id


TEMPORARY_NAME = re.compile(r"\..+\.\d+\.[0-9a-f]{8}")
"""What a process that was killed amid `write_atomically` leaves behind."""


def write_atomically(path: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Replaces a file atomically: readers and crashes see the old or the new content, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
