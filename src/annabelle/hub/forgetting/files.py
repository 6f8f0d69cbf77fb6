"""Removes a text from files of a home: masks records, deletes copies, rewrites exports, lists personal files."""

from __future__ import annotations

import json
import logging
import os
import tempfile
import zipfile
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Literal

from annabelle.core.errors import StorageTrouble
from annabelle.core.home import Home, write_atomically
from annabelle.core.secrets.forget_mask import FORGOTTEN_MASK, ForgetMatcher, fold_unescaped, mask_value, prune_value
from annabelle.hub.forgetting.forget_journal import overwrite_with_zeros, shred_file
from annabelle.store.text_removal import bytes_contain, database_bytes_contain, file_contains

Treatment = Literal["lines", "copy", "export"]

_DATABASE = (".db", ".db-wal", ".db-shm", ".db-journal", ".lock")
_COPY = (".replaced", ".damaged-", ".restored")
_SECRETS = ("annabelle.token", "forgetting.json", "forgotten.jsonl")
# The audit never holds content, and a masked line would break its chain.
_AUDIT = "audit"

# Working memory of agents, one JSON record per thread.
_WORKSPACES = "workspaces"

# Where servers store long results; see `servers/kit/files/paths.py`.
_RESULTS = Path("temp", "results")


@dataclass(frozen=True, slots=True)
class HomeFile:
    path: Path
    treatment: Treatment
    place: str


class HomeFiles:
    """The files of one home. `files` leaves out databases and the embedding cache, handled elsewhere."""

    def __init__(self, home: Home, export: Path | None = None, workspace: Path | None = None) -> None:
        self._home = home
        self._export, self._workspace = export or home.memory_export, workspace or home.workspace

    def databases(self) -> list[Path]:
        home = self._home
        files = [home.database_file, home.flows_file, home.memory_file, *home.agents.glob("*/turns.db")]
        return [path for file in files for path in (file, file.with_name(f"{file.name}-wal")) if path.is_file()]

    def files(self) -> Iterator[HomeFile]:
        yield from (HomeFile(path, "export", "exports") for path in _walk_files(self._export))
        # Long tool results and browser profiles are copies: a file that holds the text is deleted.
        yield from (HomeFile(path, "copy", "results") for path in _walk_files(self._workspace / _RESULTS))
        yield from (HomeFile(path, "copy", "browser") for path in _walk_files(self._home.browser_profiles))
        home, seen = self._home, (self._export, self._workspace, self._home.browser_profiles, *self._server_folders())
        skipped = {home.models, home.embedding_cache, home.skills, home.playbooks, home.config, home.connections, *seen}
        for path in _walk_files(home.root, skipped):
            found = self._classify(path)
            if found is not None:
                yield found

    def personal_files(self) -> Iterator[Path]:
        """The person's own files. They are listed, never changed."""
        home = self._home
        results = self._workspace / _RESULTS
        owned = (self._workspace, home.config, home.skills, home.playbooks, home.connections)
        for folder in (*owned, *self._server_folders()):
            yield from _walk_files(folder, {self._export, results})
        yield from home.agents.glob("*/*.md")
        yield from (path for path in (home.good_agents_file,) if path.is_file())

    def _server_folders(self) -> list[Path]:
        """Folders in which servers keep data of the person: scripts, mail filters, feeds."""
        home = self._home
        folders = (path for path in sorted(home.data.glob("*/")) if path.is_dir())
        return [path for path in folders if path not in (home.embedding_cache, home.browser_profiles)]

    def _classify(self, path: Path) -> HomeFile | None:
        home, name = self._home, path.name
        if any(mark in name for mark in _COPY) or path.is_relative_to(home.backups):
            return HomeFile(path, "copy", "backups")
        if path.is_relative_to(home.agents) and path.parent.name == _WORKSPACES:
            return HomeFile(path, "lines", "workspaces")
        if name.endswith(_DATABASE) or name in _SECRETS or name.endswith((".json", ".md", ".pid", ".sock")):
            return None
        if name.startswith(_AUDIT) and path.parent in (home.logs, home.data):
            return None
        if path.is_relative_to(home.agents):
            return HomeFile(path, "lines", "sessions")
        if path == home.history_file:
            return HomeFile(path, "lines", "terminal history")
        return HomeFile(path, "lines", "traces" if name.startswith(home.traces_file.name) else "logs")


def _walk_files(root: Path, skipped: set[Path] | None = None) -> Iterator[Path]:
    """Regular files below a folder. Links are not followed, because they may lead outside the home."""
    for folder, folders, names in os.walk(root):
        here = Path(folder)
        folders[:] = sorted(name for name in folders if here / name not in (skipped or set()))
        for name in sorted(names):
            path = here / name
            if path.is_file() and not path.is_symlink():
                yield path


FileLine = tuple[int, bytes]
"""Offset of a line in its file, and its bytes without the line ending."""


def mask_lines(path: Path, matcher: ForgetMatcher, *, apply: bool) -> int:
    """Overwrite the lines that hold the text. Returns how many there were."""
    descriptor = os.open(path, os.O_RDWR if apply else os.O_RDONLY)
    try:
        blob = b"".join(iter(lambda: os.read(descriptor, 4_000_000), b""))
        found = list(find_replacements(blob, matcher))
        for at, line in found if apply else []:
            os.pwrite(descriptor, line, at)
        if apply and found:
            os.fsync(descriptor)
        return len(found)
    finally:
        os.close(descriptor)


def find_replacements(blob: bytes, matcher: ForgetMatcher) -> Iterator[FileLine]:
    if not matcher.found_in_bytes(blob):
        return
    plain: list[FileLine] = []
    for at, line in _split_lines(blob):
        record = _parse_record(line)
        if record is None:
            plain.append((at, line))
        elif matcher.found_in(line.decode(errors="replace")):
            new = _mask_record(line, record, matcher)
            if new is not None:
                yield at, new
    for at, line in _lines_holding(plain, matcher):
        new = FORGOTTEN_MASK.encode()[: len(line)].ljust(len(line))
        if new != line:  # the mask itself may match the text
            yield at, new


def _split_lines(blob: bytes) -> Iterator[FileLine]:
    at = 0
    for line in blob.split(b"\n"):
        if line.strip():
            yield at, line
        at += len(line) + 1


def _parse_record(line: bytes) -> dict[str, object] | list[object] | None:
    if not line.lstrip().startswith((b"{", b"[")):
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _mask_record(line: bytes, record: dict[str, object] | list[object], matcher: ForgetMatcher) -> bytes | None:
    """The masked record padded with blanks, None if the text matches only across its JSON syntax."""
    for mask in (FORGOTTEN_MASK, ""):
        new = mask_value(matcher, record, mask)
        if new == record:
            return None
        written = json.dumps(new, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")
        if len(written) <= len(line):
            return written.ljust(len(line))
    return FORGOTTEN_MASK.encode()[: len(line)].ljust(len(line))


def _lines_holding(lines: list[FileLine], matcher: ForgetMatcher) -> Iterator[FileLine]:
    """Lines that hold the text, or a part of it that continues on the next line."""
    texts = [line.decode(errors="replace") for _at, line in lines]
    hit = {number for number, text in enumerate(texts) if matcher.found_in(text)}
    spellings = [fold_unescaped(text) for text in texts]
    for which in range(max(map(len, spellings), default=0)):
        chosen = ((number, ways[min(which, len(ways) - 1)]) for number, ways in enumerate(spellings))
        folded = [(number, text) for number, text in chosen if text]
        starts = list(accumulate((len(text) + 1 for _number, text in folded), initial=0))
        for start, end in matcher.find_spans(" ".join(text for _number, text in folded)):
            first, last = bisect_right(starts, start) - 1, bisect_right(starts, end - 1) - 1
            hit |= {folded[place][0] for place in range(first, last + 1)}
    for number in sorted(hit):
        yield lines[number]


def prune_export(path: Path, matcher: ForgetMatcher, *, apply: bool) -> int:
    """Rewrite an export without the text. Returns how many lines or files held it."""
    blob = path.read_bytes()
    if not matcher.found_in_bytes(blob):
        return 0
    if path.suffix == ".json":
        kept, count = _prune_json(blob, matcher), 1
    else:
        gone = {at for at, _line in find_replacements(blob, matcher)}
        kept, count = _drop_lines(blob, gone), len(gone)
    if apply:
        _replace_file(path, kept)
    return count


def _prune_json(blob: bytes, matcher: ForgetMatcher) -> str:
    try:
        value: object = json.loads(blob)
    except (ValueError, RecursionError):
        return ""  # a broken document is of no use
    return json.dumps(prune_value(matcher, value), ensure_ascii=False, indent=2) + "\n"


def _drop_lines(blob: bytes, gone: set[int]) -> str:
    kept: list[bytes] = []
    at = 0
    for line in blob.split(b"\n"):
        if at not in gone:
            kept.append(line)
        at += len(line) + 1
    return b"\n".join(kept).decode(errors="replace")


def _replace_file(path: Path, text: str) -> None:
    """Replace a file, and overwrite the old content with zeros."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        write_atomically(path, text, mode=os.fstat(descriptor).st_mode & 0o777)
        overwrite_with_zeros(descriptor)
    finally:
        os.close(descriptor)


_log = logging.getLogger(__name__)
_OWN_FILES = 5_000
_OWN_BYTES = 5_000_000
_NAMED = 50


def sweep_files(places: HomeFiles, matcher: ForgetMatcher, *, apply: bool) -> dict[str, int]:
    """Counts the lines, files and copies that hold the text, by place. With `apply`, removes them."""
    counts: Counter[str] = Counter()
    for found in places.files():
        try:
            counts[found.place] += _sweep_file(found, matcher, apply=apply)
        except FileNotFoundError:
            continue  # a rotated log or a replaced backup
        except OSError as error:
            raise StorageTrouble(
                f"{found.path.name} can not be looked through or changed: {error.strerror}.",
                hint="Fix its permissions or free some disk space, and try again.",
            ) from error
    return {place: count for place, count in counts.items() if count}


def count_database_remains(places: HomeFiles, matcher: ForgetMatcher) -> int:
    """Number of database files that hold the text in their bytes, including free pages."""
    return sum(database_bytes_contain(path, matcher) for path in places.databases())


def find_personal_files(places: HomeFiles, matcher: ForgetMatcher) -> list[str]:
    """The person's own files that hold the text. Large files are skipped, and the search is bounded."""
    return [str(path) for path in _walk_personal_files(places, matcher)]


def _walk_personal_files(places: HomeFiles, matcher: ForgetMatcher) -> Iterator[Path]:
    named = 0
    for looked, path in enumerate(places.personal_files()):
        if looked >= _OWN_FILES or named >= _NAMED:
            return
        try:
            if path.stat().st_size <= _OWN_BYTES and bytes_contain(path, matcher):
                named += 1
                yield path
        except OSError as error:
            _log.info("A file was not looked through: %s", error.strerror)


def _archive_contains(path: Path, matcher: ForgetMatcher) -> bool:
    """Whether any file of a backup of the home holds the text. A damaged one may, so it does."""
    try:
        with zipfile.ZipFile(path) as archive, tempfile.TemporaryDirectory(dir=path.parent) as folder:
            for entry in archive.infolist():
                if file_contains(Path(archive.extract(entry, folder)), matcher):
                    return True
    except zipfile.BadZipFile:
        return True
    return False


def _sweep_file(found: HomeFile, matcher: ForgetMatcher, *, apply: bool) -> int:
    if found.treatment == "lines":
        return mask_lines(found.path, matcher, apply=apply)
    if found.treatment == "export":
        return prune_export(found.path, matcher, apply=apply)
    if not (_archive_contains if found.path.suffix == ".zip" else file_contains)(found.path, matcher):
        return 0
    if apply:
        shred_file(found.path)
    return 1
