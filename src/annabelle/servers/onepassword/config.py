"""Where the `op` command is, and what it may know."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from annabelle.servers.kit import own_settings


@dataclass(frozen=True, slots=True)
class OnePasswordConfig:
    """Read once at the start. `environment` is all the command gets to see of ours."""

    program: Path | None = None
    environment: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    seconds: float = 20.0
    handle_seconds: float = 600.0

    @classmethod
    def from_environment(cls) -> OnePasswordConfig:
        settings = own_settings()
        environment = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
        if settings.op_service_account_token is not None:
            environment["OP_SERVICE_ACCOUNT_TOKEN"] = settings.op_service_account_token.get_secret_value()
        program = settings.op_path.expanduser() if settings.op_path is not None else None
        return cls(program=program, environment=environment)

    @property
    def has_token(self) -> bool:
        return "OP_SERVICE_ACCOUNT_TOKEN" in self.environment
