"""What `annabelle doctor --fix` does. It makes, moves and protects files; it deletes nothing that a person wrote."""

from __future__ import annotations

import contextlib
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from annabelle.core.errors import AnnabelleError
from annabelle.core.result_text import format_size
from annabelle.hub.diagnosis.check import MEGABYTE, DiagnosisContext
from annabelle.hub.diagnosis.installation import (
    OPEN_TO_OTHERS,
    list_databases,
    list_secret_files,
    list_torn_files,
    precious_state,
    replaceable_state,
)
from annabelle.hub.diagnosis.logs import list_large_logs
from annabelle.store.engine import driver
from annabelle.store.file_lock import FileLock

_KEPT_LOGS: Final = 3
_OWNED_ELSEWHERE: Final = ("audit", "forgotten.jsonl")
"""These rotate by themselves, and every line of them counts."""
_WORTH_A_VACUUM: Final = 10 * MEGABYTE


@dataclass(frozen=True, slots=True)
class RepairStep:
    done: bool
    text: str


def repair_home(context: DiagnosisContext, *, hub_runs: bool) -> list[RepairStep]:
    """Do what is safe, and say what was done and what was left. While a hub runs, its files are left alone."""
    steps: list[RepairStep] = []
    for repair in (
        _make_folders,
        _protect_files,
        *(() if hub_runs else (_remove_run_files, _put_aside, _rotate, _vacuum)),
    ):
        try:
            steps += repair(context)
        except (AnnabelleError, OSError) as error:
            text = error.message if isinstance(error, AnnabelleError) else str(error)
            steps.append(RepairStep(done=False, text=text))
    steps += [
        RepairStep(done=False, text=f"{path.name} is damaged and was left: it may say what must not happen.")
        for path in list_torn_files(precious_state(context.home))
    ]
    if hub_runs:
        text = "Logs, state files and databases were left, because Annabelle runs. Stop it first: annabelle down"
        steps.append(RepairStep(done=False, text=text))
    return steps


def _make_folders(context: DiagnosisContext) -> Iterator[RepairStep]:
    home = context.home
    missing = [folder for folder in (home.root, home.data, home.logs, home.config) if not folder.is_dir()]
    is_open = home.root.is_dir() and stat.S_IMODE(home.root.stat().st_mode) & OPEN_TO_OTHERS
    if missing or is_open:
        home.prepare()
    for folder in missing:
        yield RepairStep(done=True, text=f"Made the folder {folder}.")
    if is_open:
        yield RepairStep(done=True, text=f"Closed {home.root} to others on this machine.")


def _protect_files(context: DiagnosisContext) -> Iterator[RepairStep]:
    for path in list_secret_files(context.home):
        if stat.S_IMODE(path.stat().st_mode) & OPEN_TO_OTHERS:
            path.chmod(0o600)
            yield RepairStep(done=True, text=f"Only you may read {path.name} now.")


def _remove_run_files(context: DiagnosisContext) -> Iterator[RepairStep]:
    """Of a hub that is dead: the kernel has released its lock."""
    home = context.home
    if FileLock(home.hub_file).find_holder() is not None:
        yield RepairStep(done=False, text="Annabelle runs and does not answer; it was left. End it: annabelle stop")
        return
    for path in (home.hub_file, *sorted(home.run.glob("*.sock"))):
        if path.exists():
            path.unlink()
            yield RepairStep(done=True, text=f"Removed {path.name}, which a killed Annabelle left behind.")


def _put_aside(context: DiagnosisContext) -> Iterator[RepairStep]:
    for path in list_torn_files(replaceable_state(context.home)):
        aside = _free_name(path)
        path.rename(aside)
        yield RepairStep(done=True, text=f"Renamed the damaged {path.name} to {aside.name}; it is made again.")


def _free_name(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.bad{number or ''}") for number in range(1_000))
    return next(name for name in names if not name.exists())


def _rotate(context: DiagnosisContext) -> Iterator[RepairStep]:
    for path in list_large_logs(context.home):
        if path.name.startswith(_OWNED_ELSEWHERE):
            yield RepairStep(done=False, text=f"{path.name} was left: it rotates by itself.")
            continue
        for number in range(_KEPT_LOGS, 0, -1):
            older = path if number == 1 else path.with_name(f"{path.name}.{number - 1}")
            if older.exists():
                older.replace(path.with_name(f"{path.name}.{number}"))
        yield RepairStep(done=True, text=f"Rotated {path.name} to {path.name}.1.")


def _vacuum(context: DiagnosisContext) -> Iterator[RepairStep]:
    for file in list_databases(context):
        lock = FileLock(file)
        if lock.find_holder() is not None:
            continue
        with contextlib.suppress(driver.Error):  # what is damaged is a finding
            freed = _vacuum_file(file, lock)
            if freed:
                yield RepairStep(done=True, text=f"Gave back {format_size(freed)} of {file.name}.")


def _vacuum_file(file: Path, lock: FileLock) -> int:
    lock.acquire()
    try:
        with contextlib.closing(
            driver.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=1, isolation_level=None)
        ) as connection:
            free, size = (
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("freelist_count", "page_size")
            )
            if free * size < _WORTH_A_VACUUM:
                return 0
            connection.execute("VACUUM")
            return int(free * size)
    finally:
        lock.release()
