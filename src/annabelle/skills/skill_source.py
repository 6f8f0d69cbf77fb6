"""Where a skill is installed from: a folder, a git repository or an archive. Nothing of it is executed (BEY-04)."""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import stat
import subprocess
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final
from urllib.parse import urlsplit

from annabelle.skills.skill_file import (
    FILE_NAME,
    MOST_FILES,
    SkillFile,
    SkillMistake,
    list_files,
    parse_skill,
    read_declared_name,
    read_skill,
    read_text,
)
from annabelle.skills.skill_folder import MOST_FOLDER_BYTES, hash_skill

_GIT_SECONDS: Final = 120
_DEEPEST: Final = 5
_CHUNK: Final = 64 * 1024
_MOST_ARCHIVE_BYTES: Final = 2 * MOST_FOLDER_BYTES
"""Of all that an archive unpacks to: it may hold a whole collection."""
_SCHEMES: Final = frozenset({"https", "ssh", "file"})
_SSH_PLACE: Final = re.compile(r"[\w.-]+@[\w.-]+:[^:].*")
_URL: Final = re.compile(r"[a-z][a-z0-9+.-]*:(//|:)", re.IGNORECASE)
_NO_FILE: Final = os.devnull
_DAMAGED: Final = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile)
_GIT: Final = (
    "git",
    *("-c", f"core.hooksPath={_NO_FILE}"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "credential.helper="),
    *("-c", "protocol.allow=never"),
    *(part for scheme in sorted(_SCHEMES) for part in ("-c", f"protocol.{scheme}.allow=always")),
    *("clone", "--quiet", "--depth=1", "--single-branch", "--no-tags", "--no-recurse-submodules", "--template="),
)


@dataclass(frozen=True, slots=True)
class FetchedSkill:
    """A skill as it was copied, not yet in use."""

    skill: SkillFile
    origin: str
    content_hash: str

    @property
    def files(self) -> list[str]:
        return [path.relative_to(self.skill.folder).as_posix() for path in list_files(self.skill.folder)]

    @property
    def size(self) -> int:
        return sum(path.stat().st_size for path in list_files(self.skill.folder))

    @property
    def scripts(self) -> list[str]:
        """What is there to be executed: by its place, or because it says so in its first two bytes."""
        return [file for file in self.files if file.startswith("scripts/") or _is_script(self.skill.folder / file)]


def fetch_skill(source: str, staging: Path, name: str | None = None) -> FetchedSkill:
    """Copies a skill into an empty folder; of several the one with this name. SkillMistake says what is wrong."""
    root, origin, has_own_name = _fetch(source, staging / ".source")
    folder = _choose(root, name)
    text = read_text(folder / FILE_NAME, folder, root)
    # The top of a repository or archive is no folder of its own, so what is there is called what it calls itself.
    named = folder if has_own_name or folder != root else Path(read_declared_name(text))
    target = staging / parse_skill(text, named).name
    _copy(folder, target)
    shutil.rmtree(staging / ".source", ignore_errors=True)
    return inspect_skill(target, origin)


def inspect_skill(folder: Path, origin: str) -> FetchedSkill:
    """Describes the skill in a folder."""
    return FetchedSkill(read_skill(folder, folder.parent), origin, hash_skill(folder))


def _fetch(source: str, target: Path) -> tuple[Path, str, bool]:
    """The folder to look in, where it came from, and whether its name means something."""
    path = Path(source).expanduser()
    if _URL.match(source) or (_SSH_PLACE.fullmatch(source) and not path.exists()):
        return target, _clone(source, target), False
    if path.is_dir():
        path = path.resolve()
        if (path / "HEAD").is_file() and (path / "objects").is_dir():
            return target, _clone(path.as_uri(), target), False
        return path, str(path), True
    if path.is_file():
        target.mkdir(parents=True)
        _unpack(path, target)
        return target, str(path.resolve()), False
    raise SkillMistake("unreadable", f"there is no folder, archive or repository {source}")


def _clone(url: str, target: Path) -> str:
    """Clones the newest state; returns the address and the commit."""
    parts = urlsplit(url)
    if "://" in url and parts.scheme.lower() not in _SCHEMES:
        raise SkillMistake("unreadable", f"git repositories come by {', '.join(sorted(_SCHEMES))}, not {parts.scheme}")
    if "://" in url and parts.password is not None:
        raise SkillMistake("unreadable", "the address contains a password, which would be stored")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")} | {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "SSH_ASKPASS": "false",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": _NO_FILE,
        "GIT_LFS_SKIP_SMUDGE": "1",
    }
    try:
        _run_git([*_GIT, "--", url, str(target)], environment)
        commit = _run_git(["git", "-C", str(target), "rev-parse", "HEAD"], environment)
    except FileNotFoundError:
        raise SkillMistake("unreadable", "the program git is not installed") from None
    except subprocess.TimeoutExpired:
        raise SkillMistake("unreadable", f"git did not finish within {_GIT_SECONDS} seconds") from None
    except subprocess.CalledProcessError as error:
        said: str = error.stderr.decode(errors="replace").strip()
        raise SkillMistake("unreadable", f"git says: {said.splitlines()[-1][:300] if said else 'nothing'}") from None
    return f"{url}@{commit}"


def _run_git(command: list[str], environment: dict[str, str]) -> str:
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, check=True, timeout=_GIT_SECONDS
    )
    return done.stdout.decode().strip()


def _unpack(path: Path, target: Path) -> None:
    left, names = _MOST_ARCHIVE_BYTES, 0
    try:
        for name, content in _members(path):
            names += 1
            if names > 10 * MOST_FILES:
                raise SkillMistake("too big", f"the archive has more than {10 * MOST_FILES} files")
            place = target / _check_member(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("xb") as file:
                while chunk := content.read(_CHUNK):
                    left -= len(chunk)
                    if left < 0:
                        raise _too_big()
                    file.write(chunk)
    except SkillMistake:
        raise
    except (*_DAMAGED, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError) as error:
        raise SkillMistake("unreadable", f"the archive cannot be unpacked: {error}") from None
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        raise SkillMistake("unreadable", "the archive has two files at one place") from None


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for info in archive.infolist():
                kind = stat.S_IFMT(info.external_attr >> 16)
                if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                    raise SkillMistake("link", f"{info.filename} in the archive is a link, or no file")
                if not info.is_dir():
                    with archive.open(info) as content:
                        yield info.filename, content
        return
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        plain = gzip.GzipFile(fileobj=file) if packed else file
        # As a stream: nothing is unpacked twice, and no header can make it read more than the limit.
        with tarfile.open(fileobj=_LimitedReader(plain, 2 * _MOST_ARCHIVE_BYTES), mode="r|") as archive:
            for member in archive:
                content = archive.extractfile(member) if member.isreg() else None
                if content is None and not member.isdir():
                    raise SkillMistake("link", f"{member.name} in the archive is a link, or no file")
                if content is not None:
                    yield member.name, content


class _LimitedReader(io.RawIOBase):
    """Ends a decompression bomb: no more than the limit is ever unpacked."""

    def __init__(self, inner: IO[bytes] | gzip.GzipFile, most: int) -> None:
        self._inner, self._left = inner, most

    def read(self, size: int = -1, /) -> bytes:
        wanted = self._left + 1 if size < 0 else min(size, self._left + 1)
        content = self._inner.read(wanted)
        self._left -= len(content)
        if self._left < 0:
            raise _too_big()
        return content


def _too_big() -> SkillMistake:
    return SkillMistake("too big", f"the archive unpacks to more than {_MOST_ARCHIVE_BYTES >> 20} MB")


def _check_member(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\\" in name or ":" in name or not path.parts:
        raise SkillMistake("link", f"{name!r} in the archive would lie outside its folder")
    return path


def _choose(root: Path, name: str | None) -> Path:
    """The folder of the one skill, or of the one with this name."""
    if (root / FILE_NAME).is_file() and name in (None, root.name):
        return root
    found: list[Path] = []
    for parent, folders, files in os.walk(root):
        here = Path(parent)
        deep = len(here.relative_to(root).parts) >= _DEEPEST
        folders[:] = [] if deep else sorted(folder for folder in folders if folder != ".git")
        found += [here] if FILE_NAME in files else []
    chosen = [folder for folder in found if name in (None, folder.name)]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(sorted(folder.name for folder in found)[:50])
    if not found:
        raise SkillMistake("unreadable", f"there is no {FILE_NAME} in it")
    raise SkillMistake("name taken", f"it has several skills; choose one with --skill: {names}")


def _copy(folder: Path, target: Path) -> None:
    hash_skill(folder)  # refuses links and too much of it
    for path in list_files(folder):
        place = path.relative_to(folder)
        (target / place).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target / place, follow_symlinks=False)


def _is_script(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(2) == b"#!"
