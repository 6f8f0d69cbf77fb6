"""Files to import, where the memory may read them: its export folder and the workspace; others are copied there."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from annabelle.core.errors import CallerMistake, NotFound, OperatorMistake, TooLarge
from annabelle.core.home import Home
from annabelle.core.settings import load_settings

PAGES = ("profile.md", "facts.md", "contacts.md", "projects.md", "memory.json")
"""What an export's folder is known by, and all of a folder that is imported."""

MAX_BYTES = 200_000_000


@contextmanager
def within_reach(path: Path) -> Generator[Path]:
    """The path itself, or a copy of it that is gone afterwards."""
    home = Home.from_environment()
    settings = load_settings(home)
    source = path.expanduser().resolve()
    if not source.exists():
        raise NotFound(f"There is no file {path}.")
    if not source.is_dir() and not source.is_file():
        raise CallerMistake(f"{path} is not a file.")
    exports = (settings.memory_export_path or home.memory_export).resolve()
    workspace = (settings.workspace_path or home.workspace).resolve()
    if source == exports:
        source = _only_export(exports)
    if source.is_relative_to(workspace) or _is_export(source, exports):
        yield source
        return
    try:
        exports.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.TemporaryDirectory(prefix="import-", dir=exports) as folder:
            yield _copied(source, Path(folder))
    except OSError as error:
        raise OperatorMistake(f"{error.filename or path} can not be copied: {error.strerror}.") from error


def _is_export(source: Path, exports: Path) -> bool:
    """A folder right in the export folder, or a file in one."""
    return source.parent == exports if source.is_dir() else source.parent.parent == exports


def _only_export(exports: Path) -> Path:
    found = sorted(folder for folder in exports.iterdir() if folder.is_dir() and any(_pages_of(folder)))
    if len(found) != 1:
        names = ", ".join(str(folder) for folder in found)
        raise CallerMistake(
            f"There {'are several exports' if found else 'is no export'} in {exports}.",
            hint=f"Name one: {names}" if found else "Make one: annabelle memory export",
        )
    return found[0]


def _copied(source: Path, folder: Path) -> Path:
    if not source.is_dir():
        if source.stat().st_size > MAX_BYTES:
            raise TooLarge(f"{source.name} is too large; files up to {MAX_BYTES // 1_000_000} MB are imported.")
        return Path(shutil.copyfile(source, folder / source.name))
    pages = list(_pages_of(source))
    if not pages:
        raise NotFound(f"There is nothing to import in {source}.", hint=f"Looked for {', '.join(PAGES)}.")
    for page in pages:
        shutil.copyfile(page, folder / page.name)
    return folder


def _pages_of(folder: Path) -> Iterable[Path]:
    return (folder / name for name in PAGES if (folder / name).is_file())
