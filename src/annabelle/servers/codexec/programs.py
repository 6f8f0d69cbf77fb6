"""The interpreters of this machine: where they are, and what else they need to be seen by code that runs in a cell."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from annabelle.core.errors import Unavailable
from annabelle.servers.codexec.isolation.layer import Layer, Mount, Program

Language = Literal["python", "node", "bash"]

_SYSTEM_PYTHON = Path("/usr/bin/python3")
_DEBIAN_WHEELS = Path("/usr/share/python-wheels")
_MORE_PLACES = ("/usr/local/bin", "/usr/bin", "/opt/homebrew/bin")
_IMAGE = {"python": "python3", "node": "node", "bash": "bash"}


class Programs:
    """What runs each language, for one layer."""

    def __init__(self, layer: Layer) -> None:
        self._layer = layer

    def interpreter(self, language: Language) -> Program:
        if not self._layer.programs_of_host:
            return Program((_IMAGE[language],))
        if language == "python":
            return self._python()
        found = _binary(language)
        if found is None:
            install = "sudo apt-get install nodejs npm" if language == "node" else "sudo apt-get install bash"
            raise Unavailable(f"{language} is not installed on this machine.", hint=f"Install it: {install}")
        return Program((str(found),), _needed(found))

    def pip(self) -> Program:
        """pip for the chosen interpreter. Debian's Python may come without one; then the one every Python carries for
        new environments is run as it is, from its wheel."""
        python = self.interpreter("python")
        ready = not self._layer.programs_of_host or _has_pip(Path(python.argv[0]).parent.parent)
        wheel = None if ready else _bundled_pip()
        if wheel is None:
            return Program((*python.argv, "-m", "pip"), python.mounts)
        mount = Mount(wheel, "/packages/pip.whl")
        return Program((*python.argv, f"{self._layer.place(mount)}/pip"), (*python.mounts, mount))

    def npm(self) -> Program:
        if not self._layer.programs_of_host:
            return Program(("npm",))
        node = self.interpreter("node")
        found = _which("npm")
        if found is None:
            raise Unavailable("npm is not installed on this machine.", hint="Install it: sudo apt-get install npm")
        script = found.resolve()
        return Program((*node.argv, str(script)), (*node.mounts, *_unless_system(script.parent.parent)))

    def _python(self) -> Program:
        """The system's Python where there is one: it holds nothing private. Else the one Annabelle runs on, without
        her packages."""
        if _SYSTEM_PYTHON.exists():
            return Program((str(_SYSTEM_PYTHON),))
        prefix = Path(sys.base_prefix).resolve()
        program = prefix / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
        return Program((str(program),), _unless_system(prefix))


def _which(name: str) -> Path | None:
    found = shutil.which(name) or shutil.which(name, path=":".join(_MORE_PLACES))
    return Path(found) if found else None


def _binary(name: str) -> Path | None:
    """The program itself; a script of a version manager only starts what lies elsewhere, and would fail in a cell."""
    places: Sequence[Path | None] = (_which(name), *(Path(place) / name for place in _MORE_PLACES))
    for place in places:
        if place is None or not place.exists():
            continue
        with place.open("rb") as file:
            if file.read(2) != b"#!":
                return place.resolve()
    return None


def _needed(program: Path) -> tuple[Mount, ...]:
    """An install of its own (…/bin/node beside …/lib/node_modules) is shown whole; a lone program alone."""
    prefix = program.parent.parent
    own = program.parent.name == "bin" and (prefix / "lib" / "node_modules").is_dir()
    whole = own and not Path.home().is_relative_to(prefix)
    return _unless_system(prefix if whole else program)


def _unless_system(place: Path) -> tuple[Mount, ...]:
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
