"""The folder that holds one install: `ANNABELLE_HOME`, by default `~/.annabelle`."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

from annabelle.core.errors import OperatorMistake

HOME_VARIABLE = "ANNABELLE_HOME"


@dataclass(frozen=True, slots=True)
class Home:
    """Paths of one install. Every path that several packages use is defined here."""

    root: Path

    @classmethod
    def from_environment(cls) -> Home:
        return cls(Path(os.environ.get(HOME_VARIABLE) or "~/.annabelle").expanduser().absolute())

    def prepare(self) -> Home:
        """Creates the required folders; OperatorMistake if the home is not writable."""
        try:
            for folder in (self.root, self.data, self.logs, self.agents, self.config, self.run):
                folder.mkdir(parents=True, exist_ok=True)
            self.root.chmod(0o700)
            probe = self.run / f".writable-{os.getpid()}"
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise OperatorMistake(
                f"The home {self.root} can not be written: {error.strerror}.",
                hint=f"Free space or fix its permissions, or set {HOME_VARIABLE} to a folder you own.",
            ) from error
        return self

    @property
    def config(self) -> Path:
        return self.root / "config"

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def run(self) -> Path:
        """Sockets, pid files and locks of the running hub."""
        return self.root / "run"

    @property
    def agents(self) -> Path:
        return self.root / "agents"

    @property
    def skills(self) -> Path:
        return self.root / "skills"

    @property
    def playbooks(self) -> Path:
        """Instructions for kinds of requests, as Markdown the user may edit."""
        return self.root / "playbooks"

    @property
    def models(self) -> Path:
        return self.root / "models"

    @property
    def backups(self) -> Path:
        return self.root / "backups"

    @property
    def workspace(self) -> Path:
        return self.root / "workspace"

    @property
    def connections(self) -> Path:
        """Connected accounts, each in a file that only its owner can read."""
        return self.root / "connections"

    @property
    def token_file(self) -> Path:
        return self.root / "annabelle.token"

    @property
    def history_file(self) -> Path:
        """Input history of the terminal chat."""
        return self.run / "history"

    @property
    def settings_file(self) -> Path:
        return self.config / "settings.env"

    @property
    def agents_file(self) -> Path:
        return self.config / "agents.json"

    @property
    def good_agents_file(self) -> Path:
        """The last valid agents.json, used while the current one is invalid."""
        return self.data / "agents.last-good.json"

    @property
    def database_file(self) -> Path:
        return self.data / "annabelle.db"

    @property
    def flows_file(self) -> Path:
        return self.data / "flows.db"

    @property
    def memory_file(self) -> Path:
        return self.data / "memory.db"

    @property
    def memory_export(self) -> Path:
        """Memories as Markdown that a person can read, edit and import again."""
        return self.root / "memory-export"

    @property
    def embedding_cache(self) -> Path:
        return self.data / "embeddings"

    @property
    def browser_profiles(self) -> Path:
        """Browser profiles, one folder per agent."""
        return self.data / "browser"

    @property
    def users_file(self) -> Path:
        return self.config / "users.json"

    @property
    def forgetting_file(self) -> Path:
        """Forget requests in progress, so that a killed hub finishes them after its restart."""
        return self.data / "forgetting.json"

    @property
    def forgotten_file(self) -> Path:
        """Log of forget requests: when, by whom and where. The text itself is stored only as a keyed hash."""
        return self.logs / "forgotten.jsonl"

    @property
    def audit_key_file(self) -> Path:
        return self.data / "audit.key"

    @property
    def audit_file(self) -> Path:
        """Log of actions and decisions; each line is chained to the previous one."""
        return self.logs / "audit.jsonl"

    @property
    def audit_head_file(self) -> Path:
        """Latest position of the audit, stored apart from it so that a cut-off tail is noticed."""
        return self.data / "audit.head"

    @property
    def halts_file(self) -> Path:
        """What the owner stopped. It stays stopped across restarts until resumed."""
        return self.data / "stopped.json"

    @property
    def pins_file(self) -> Path:
        """State of the external servers when the user accepted them."""
        return self.data / "pinned-servers.json"

    @property
    def known_servers_file(self) -> Path:
        return self.root / "last-known-mcps.json"

    @property
    def traces_file(self) -> Path:
        return self.logs / "traces.jsonl"

    @property
    def hub_file(self) -> Path:
        """Pid, address and version of the running hub, for commands that look for it."""
        return self.run / "hub.json"

    def agent(self, agent_id: str) -> Path:
        return self.agents / agent_id


def write_atomically(path: Path, text: str, mode: int = 0o600) -> None:
    """Replaces a file atomically: readers and crashes see the old or the new text, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
