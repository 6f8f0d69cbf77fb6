"""The interpreters of this machine, and how each language runs code."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from annabelle.core.errors import Unavailable
from annabelle.servers.codexec.isolation.backend import Mount, SandboxBackend, SandboxProgram

Language = Literal["python", "node", "bash"]

_SYSTEM_PYTHON = Path("/usr/bin/python3")
_DEBIAN_WHEELS = Path("/usr/share/python-wheels")
_MORE_PLACES = ("/usr/local/bin", "/usr/bin", "/opt/homebrew/bin")
_IMAGE = {"python": "python3", "node": "node", "bash": "bash"}


class InterpreterFinder:
    def __init__(self, backend: SandboxBackend) -> None:
        self._backend = backend

    def interpreter(self, language: Language) -> SandboxProgram:
        if not self._backend.programs_of_host:
            return SandboxProgram((_IMAGE[language],))
        if language == "python":
            return self._python()
        found = _find_binary(language)
        if found is None:
            install = "sudo apt-get install nodejs npm" if language == "node" else "sudo apt-get install bash"
            raise Unavailable(f"{language} is not installed on this machine.", hint=f"Install it: {install}")
        return SandboxProgram((str(found),), _needed_mounts(found))

    def pip(self) -> SandboxProgram:
        """pip for the chosen interpreter. Debian's Python may lack it; then the wheel bundled with ensurepip is run."""
        python = self.interpreter("python")
        ready = not self._backend.programs_of_host or _has_pip(Path(python.argv[0]).parent.parent)
        wheel = None if ready else _bundled_pip()
        if wheel is None:
            return SandboxProgram((*python.argv, "-m", "pip"), python.mounts)
        mount = Mount(wheel, "/packages/pip.whl")
        return SandboxProgram((*python.argv, f"{self._backend.place(mount)}/pip"), (*python.mounts, mount))

    def npm(self) -> SandboxProgram:
        if not self._backend.programs_of_host:
            return SandboxProgram(("npm",))
        node = self.interpreter("node")
        found = _find_command("npm")
        if found is None:
            raise Unavailable("npm is not installed on this machine.", hint="Install it: sudo apt-get install npm")
        script = found.resolve()
        return SandboxProgram((*node.argv, str(script)), (*node.mounts, *_mount_unless_system(script.parent.parent)))

    def _python(self) -> SandboxProgram:
        """The system's Python, which holds nothing private; otherwise Annabelle's own without its packages."""
        if _SYSTEM_PYTHON.exists():
            return SandboxProgram((str(_SYSTEM_PYTHON),))
        prefix = Path(sys.base_prefix).resolve()
        program = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        return SandboxProgram((str(program),), _mount_unless_system(prefix))


def _find_command(name: str) -> Path | None:
    found = shutil.which(name) or shutil.which(name, path=":".join(_MORE_PLACES))
    return Path(found) if found else None


def _find_binary(name: str) -> Path | None:
    """The program itself. A version manager's script starts a program elsewhere and would fail in a sandbox."""
    places: Sequence[Path | None] = (_find_command(name), *(Path(place) / name for place in _MORE_PLACES))
    for place in places:
        if place is None or not place.exists():
            continue
        with place.open("rb") as file:
            if file.read(2) != b"#!":
                return place.resolve()
    return None


def _needed_mounts(program: Path) -> tuple[Mount, ...]:
    """Mount a separate install (…/bin/node with …/lib/node_modules) whole, otherwise the program alone."""
    prefix = program.parent.parent
    own = program.parent.name == "bin" and (prefix / "lib" / "node_modules").is_dir()
    whole = own and not Path.home().is_relative_to(prefix)
    return _mount_unless_system(prefix if whole else program)


def _mount_unless_system(place: Path) -> tuple[Mount, ...]:
    return () if place.is_relative_to("/usr") else (Mount(place, str(place)),)


def _has_pip(prefix: Path) -> bool:
    return any(any(prefix.glob(f"lib/python3*/{kind}-packages/pip/__main__.py")) for kind in ("dist", "site"))


def _bundled_pip() -> Path | None:
    spec = importlib.util.find_spec("ensurepip")
    folders = [Path(spec.origin).parent / "_bundled"] if spec is not None and spec.origin else []
    for folder in (*folders, _DEBIAN_WHEELS):
        wheels = sorted(folder.glob("pip-*.whl"))
        if wheels:
            return wheels[-1]
    return None


SessionLanguage = Literal["python", "node"]

_DRIVERS = "annabelle.servers.codexec.drivers"
_NODE_HEAP_SHARE = 0.75


@dataclass(frozen=True, slots=True)
class ProgramStart:
    """Code files, and interpreter arguments in which `{code}` is their folder."""

    files: dict[str, str]
    arguments: tuple[str, ...]

    def argv(self, folder: str) -> tuple[str, ...]:
        return tuple(argument.replace("{code}", folder, 1) for argument in self.arguments)


def start_for_code(language: Language, code: str, memory_mb: int) -> ProgramStart:
    if language == "python":
        return ProgramStart({"main.py": code}, (*_PYTHON, "{code}/main.py"))
    if language == "node":
        return ProgramStart(
            {"main.mjs": code, "run.cjs": _load_driver("run.cjs")}, (*_node(memory_mb), "{code}/run.cjs")
        )
    return ProgramStart({"main.sh": code}, ("--noprofile", "--norc", "{code}/main.sh"))


def start_for_session(language: SessionLanguage, memory_mb: int) -> ProgramStart:
    if language == "python":
        return ProgramStart({"session.py": _load_driver("session.py")}, (*_PYTHON, "{code}/session.py"))
    return ProgramStart({"session.cjs": _load_driver("session.cjs")}, (*_node(memory_mb), "{code}/session.cjs"))


_PYTHON = ("-u", "-B", "-X", "utf8")


def _node(memory_mb: int) -> tuple[str, ...]:
    return (f"--max-old-space-size={int(memory_mb * _NODE_HEAP_SHARE)}",)


@cache
def _load_driver(name: str) -> str:
    return files(_DRIVERS).joinpath(name).read_text(encoding="utf-8")
