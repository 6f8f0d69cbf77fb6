"""Isolation by a container engine and an image that the person has set up."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from annabelle.core.errors import InvalidArguments
from annabelle.servers.codexec.isolation.backend import NOBODY, SCRATCH, Mount, SandboxBackend, SandboxSpec, give_folder

_ENGINE_VARIABLES = ("PATH", "HOME", "DOCKER_HOST", "CONTAINER_HOST", "XDG_RUNTIME_DIR")


class Container(SandboxBackend):
    name = "container"
    programs_of_host = False

    def __init__(self, engine: str, image: str, which: Callable[[str], str | None] = shutil.which) -> None:
        self._engine = engine
        self._image = image
        self._which = which

    def missing(self) -> str | None:
        if not self._engine or not self._image:
            return "no container engine and image are set (CODEXEC_CONTAINER_ENGINE, CODEXEC_CONTAINER_IMAGE)"
        if self._engine not in ("docker", "podman"):
            return "CODEXEC_CONTAINER_ENGINE is neither docker nor podman"
        if self._image.startswith("-"):
            return "CODEXEC_CONTAINER_IMAGE is not the name of an image"
        return None if self._which(self._engine) else f"{self._engine} is not installed"

    def prepare(self, folder: Path, *, private: bool) -> None:
        if os.geteuid() == 0:
            give_folder(folder, NOBODY)

    def environment(self, sandbox: SandboxSpec) -> dict[str, str]:
        """What the engine itself needs. The sandbox's variables are passed by name, without values."""
        own = {name: os.environ[name] for name in _ENGINE_VARIABLES if name in os.environ}
        return {**own, **{name: value for name, value in sandbox.env.items() if name not in own}}

    def command(self, sandbox: SandboxSpec, call_filter: int | None = None) -> list[str]:
        """Without a filter of ours: the engine has its own."""
        limits = sandbox.limits
        memory = f"{limits.memory_bytes}b"
        arguments = [self._program(), "run", "--rm", "--pull=never", "--interactive", "--init", "--name", sandbox.name]
        arguments += ["--network", "bridge" if sandbox.network else "none", "--hostname", "cell", "--read-only"]
        arguments += ["--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", self._user()]
        arguments += ["--pids-limit", str(limits.processes), "--memory", memory, "--memory-swap", memory]
        arguments += ["--ulimit", "core=0", "--ulimit", f"fsize={limits.file_bytes}", "--ulimit", "nofile=1024"]
        arguments += ["--tmpfs", f"{SCRATCH}:rw,mode=1777,size={limits.memory_bytes // 4}", "--workdir", sandbox.folder]
        if self._engine == "podman" and os.geteuid() != 0:
            arguments += ["--userns", "keep-id"]
        for name, value in sorted(sandbox.env.items()):
            # PATH and HOME of the environment are the engine's own, so the sandbox's are passed with their values.
            arguments += ["--env", f"{name}={value}" if name in _ENGINE_VARIABLES else name]
        for mount in sandbox.mounts:
            arguments += ["--mount", _bind(mount)]
        return [*arguments, self._image, *sandbox.argv]

    def stop_command(self, sandbox: SandboxSpec) -> list[str] | None:
        return [self._program(), "kill", sandbox.name]

    def _program(self) -> str:
        return self._which(self._engine) or self._engine

    def _user(self) -> str:
        user, group = os.geteuid(), os.getegid()
        return f"{user}:{group}" if user else f"{NOBODY}:{NOBODY}"


def _bind(mount: Mount) -> str:
    """The engine splits this at commas: a path with a comma could name another folder."""
    if any(char in f"{mount.source}{mount.target}" for char in ',"\n\r'):
        raise InvalidArguments(
            "Folders with a comma or a quote in their path can not be given to a container.",
            hint="Rename the folder, or leave working_dir out.",
            field="working_dir",
        )
    return f"type=bind,source={mount.source},target={mount.target}{'' if mount.writable else ',readonly'}"
