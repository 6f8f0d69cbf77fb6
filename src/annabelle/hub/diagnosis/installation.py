"""What `annabelle doctor` looks at beside the checks of a hub: whether one can start here, in this home (DIA-04)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from dotenv.parser import parse_stream

from annabelle.core.errors import ConfigMistake, OperatorMistake
from annabelle.core.home import Home
from annabelle.core.result_text import format_size
from annabelle.core.settings import load_settings
from annabelle.embeddings.embedder import EmbeddingsUnavailable
from annabelle.hub.diagnosis.check import MEGABYTE, Check, DiagnosisContext, Problem
from annabelle.hub.diagnosis.offline import read_agents
from annabelle.hub.instance import bind_port
from annabelle.hub.security.users_file import read_users
from annabelle.store.engine import DatabaseLocation, damaged_error, driver, parse_url, sqlite_url
from annabelle.store.file_lock import FileLock

LEAST_PYTHON: Final = (3, 11)
LITTLE_SPACE: Final = 200 * MEGABYTE
NO_SPACE: Final = 3 * MEGABYTE
OPEN_TO_OTHERS: Final = 0o077
_FIX: Final = "annabelle doctor --fix does it."
_LOCK_SECONDS: Final = 1.0


def list_secret_files(home: Home) -> list[Path]:
    """Files that hold secrets, and that only their owner may read."""
    named = (home.token_file, home.settings_file, home.audit_key_file, home.users_file)
    return [path for path in (*named, *sorted(home.connections.glob("*"))) if path.is_file()]


def list_torn_files(files: Iterable[Path]) -> list[Path]:
    """Those of these JSON files that are no JSON."""
    return [path for path in files if path.is_file() and not _is_json(path)]


def replaceable_state(home: Home) -> tuple[Path, ...]:
    """State that a hub makes again by itself."""
    offered = home.skills / "offered.json"
    return home.known_servers_file, home.token_uses_file, home.good_agents_file, home.error_baseline_file, offered


def precious_state(home: Home) -> tuple[Path, ...]:
    """State that says what must not happen, or what is still to be done: a person has to look at it."""
    return home.halts_file, home.pins_file, home.skill_pins_file, home.forgetting_file


def list_databases(context: DiagnosisContext) -> list[Path]:
    home = context.home
    memory = context.settings.memory_db_path or home.memory_file
    files = [home.database_file, home.flows_file, memory, *home.agents.glob("*/turns.db")]
    return [file for file in files if file.is_file()]


async def check_home(context: DiagnosisContext) -> list[Problem]:
    root = context.home.root
    if not root.exists():
        return [Problem("info", f"There is no home at {root} yet.", "annabelle init makes it.", "missing")]
    if not root.is_dir() or not os.access(root, os.W_OK | os.X_OK):
        action = "Fix its permissions, or set ANNABELLE_HOME to a folder you own."
        return [Problem("critical", f"The home {root} cannot be written.", action, "read-only")]
    found: list[Problem] = []
    if stat.S_IMODE(root.stat().st_mode) & OPEN_TO_OTHERS:
        found.append(Problem("warning", f"Others on this machine may look into {root}.", _FIX, "open"))
    wanted = (context.home.data, context.home.logs)
    for name in [folder.name for folder in wanted if folder.exists() and not folder.is_dir()]:
        text = f"{name} in the home is a file, and Annabelle needs a folder there."
        found.append(Problem("critical", text, f"Move {name} away; annabelle doctor --fix makes the folder.", name))
    missing = [folder.name for folder in wanted if not folder.exists()]
    if missing:
        text = f"The home has no folder {' and no folder '.join(missing)}."
        found.append(Problem("warning", text, f"Annabelle makes it at its start, or {_FIX}", "folders"))
    return found


async def check_settings(context: DiagnosisContext) -> list[Problem]:
    try:
        load_settings(context.home)
    except ConfigMistake as mistake:
        line = _find_line(context.home.settings_file, mistake.field)
        where = "" if line is None else f"{context.home.settings_file.name}, line {line}: "
        return [Problem("critical", f"{where}{mistake.message}", mistake.hint or "Fix it.")]
    return []


def _find_line(file: Path, name: str | None) -> int | None:
    with contextlib.suppress(OSError, UnicodeDecodeError), file.open(encoding="utf-8") as text:
        return next((one.original.line for one in parse_stream(text) if (one.key or "").upper() == name), None)
    return None


async def check_config_files(context: DiagnosisContext) -> list[Problem]:
    home, settings = context.home, context.settings
    found: list[Problem] = []
    files = {"agents": lambda: read_agents(home, settings), "users": lambda: read_users(home.users_file)}
    for name, read in files.items():
        try:
            read()
        except ConfigMistake as mistake:
            found.append(Problem("warning", mistake.message, "Fix it; the last good one stays in force.", name))
    external = settings.external_mcps_path or home.config / "external-mcps.json"
    found += [
        Problem("warning", f"{path.name} is no JSON.", "Fix it; what it says does not hold until then.", path.name)
        for path in list_torn_files((external,))
    ]
    return found


async def check_state_files(context: DiagnosisContext) -> list[Problem]:
    home = context.home
    found = [
        Problem("warning", f"{path.name} is damaged.", f"It can be made again: {_FIX}", path.name)
        for path in list_torn_files(replaceable_state(home))
    ]
    return found + [
        Problem("critical", f"{path.name} is damaged.", "Restore it from a backup: annabelle restore", path.name)
        for path in list_torn_files(precious_state(home))
    ]


async def check_secret_files(context: DiagnosisContext) -> list[Problem]:
    return [
        Problem("warning", f"Others on this machine may read {path.name}.", _FIX, path.name)
        for path in list_secret_files(context.home)
        if stat.S_IMODE(path.stat().st_mode) & OPEN_TO_OTHERS
    ]


async def check_models(_context: DiagnosisContext) -> list[Problem]:
    from annabelle.embeddings.embedded_model import load_weights  # noqa: PLC0415  the hub does not load model code
    from annabelle.llm.gguf_models import find_packaged_weights  # noqa: PLC0415

    missing: list[str] = [] if find_packaged_weights() is not None else ["the model that answers without a service"]
    try:
        await asyncio.to_thread(load_weights, "l2_supercat_256")
    except EmbeddingsUnavailable:
        missing.append("the model for searching by meaning")
    action = "Install Annabelle again; until then choose another model with annabelle init."
    return [Problem("warning", f"This install lacks {what}.", action, what) for what in missing]


async def check_disk(context: DiagnosisContext) -> list[Problem]:
    folder = next(path for path in (context.home.root, *context.home.root.parents) if path.is_dir())
    free = shutil.disk_usage(folder).free
    if free >= LITTLE_SPACE:
        return []
    text = f"The disk of the home has {format_size(free)} left."
    return [Problem("critical" if free < NO_SPACE else "warning", text, "Free some space.")]


async def check_python(_context: DiagnosisContext) -> list[Problem]:
    if sys.version_info[:2] >= LEAST_PYTHON:
        return []
    text = f"Python {sys.version_info[0]}.{sys.version_info[1]} is too old."
    return [Problem("critical", text, "Install Python 3.11 or newer, then Annabelle again.")]


async def check_hub(context: DiagnosisContext) -> list[Problem]:
    """Nobody answers: because nothing runs, or because it hangs or was killed."""
    home = context.home
    holder = FileLock(home.hub_file).find_holder()
    if holder is not None:
        action = "If it is not just starting, end it: annabelle stop. Then start it: annabelle up"
        return [Problem("critical", f"Annabelle runs as process {holder or 'unknown'} and does not answer.", action)]
    if home.hub_file.exists():
        text = "Annabelle was killed and left its run file behind."
        return [Problem("warning", text, f"annabelle up starts it and replaces the file; {_FIX}", "stale")]
    return [Problem("info", "Annabelle does not run.", "Start it with: annabelle up", "stopped")]


async def check_port(context: DiagnosisContext) -> list[Problem]:
    if FileLock(context.home.hub_file).find_holder() is not None:
        return []  # it is Annabelle's own
    try:
        bind_port(context.settings.annabelle_port).close()
    except OperatorMistake as taken:
        return [Problem("critical", taken.message, taken.hint or "Choose another one.")]
    return []


async def check_databases(context: DiagnosisContext) -> list[Problem]:
    return await asyncio.to_thread(lambda: list(_judge_databases(context)))


def _judge_databases(context: DiagnosisContext) -> Iterator[Problem]:
    for file in list_databases(context):
        place = DatabaseLocation(parse_url(sqlite_url(file)), context.home.backups)
        said = _probe_database(file)
        if said.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
            holder = FileLock(file).find_holder()
            by = f"process {holder}" if holder else "another program"
            yield Problem("critical", f"{file.name} is locked by {by}.", "Close what has it open.", file.name)
        elif said.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN")):
            yield Problem("critical", f"{file.name} cannot be opened.", "Fix its permissions.", file.name)
        elif said:
            yield Problem("critical", f"{file.name} is damaged.", damaged_error(place).hint or "", file.name)


def _probe_database(file: Path) -> str:
    """The name of SQLite's error; empty if the file is whole and can be written."""
    try:
        with contextlib.closing(
            driver.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, timeout=_LOCK_SECONDS, isolation_level=None)
        ) as connection:
            connection.execute("BEGIN IMMEDIATE")
            whole = connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
            connection.execute("ROLLBACK")
    except driver.Error as error:
        return str(getattr(error, "sqlite_errorname", "")) or "SQLITE_ERROR"
    return "" if whole else "SQLITE_CORRUPT"


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return False
    return True


ALWAYS: Final = (
    Check(
        "home-folder",
        "installation",
        ("critical", "warning", "info"),
        "the home cannot be written (warning: others may look into it, or folders are missing; info: there is none)",
        check_home,
    ),
    Check("settings-file", "installation", ("critical",), "a setting is not valid; the line is named", check_settings),
    Check(
        "config-files",
        "installation",
        ("warning",),
        "`agents.json`, `users.json` or `external-mcps.json` cannot be read",
        check_config_files,
    ),
    Check(
        "state-files",
        "installation",
        ("critical", "warning"),
        "a state file is torn (warning: one that can be made again)",
        check_state_files,
    ),
    Check("secret-files", "installation", ("warning",), "others may read a file with secrets", check_secret_files),
    Check(
        "packaged-models", "installation", ("warning",), "a model that comes with Annabelle is missing", check_models
    ),
    Check(
        "disk-space",
        "installation",
        ("critical", "warning"),
        f"less than {NO_SPACE // MEGABYTE} MB are free (warning: {LITTLE_SPACE // MEGABYTE} MB)",
        check_disk,
    ),
    Check("python-version", "installation", ("critical",), "Python is older than 3.11", check_python),
)
WHILE_RUNNING: Final = tuple(check for check in ALWAYS if check.run is not check_models)
"""Those a hub runs itself when it is asked to."""
WHILE_STOPPED: Final = (
    Check(
        "hub-process",
        "installation",
        ("critical", "warning", "info"),
        "a hub does not answer (warning: it was killed; info: it does not run)",
        check_hub,
    ),
    Check("port", "installation", ("critical",), "`ANNABELLE_PORT` is taken by another program", check_port),
    Check(
        "database-files",
        "installation",
        ("critical",),
        "a database is locked, damaged or not readable",
        check_databases,
    ),
)
