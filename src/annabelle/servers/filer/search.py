"""Finds files by name or content."""

from __future__ import annotations

import fnmatch
import os
import stat
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import AnnabelleError, InvalidArguments
from annabelle.servers.filer.folder_walk import FolderWalk
from annabelle.servers.filer.operations import FileOperations
from annabelle.servers.filer.read import decode_text, is_binary
from annabelle.servers.kit import Result, StopSign, current_call, tool
from annabelle.servers.kit.files.atomic_write import iter_chunks
from annabelle.servers.kit.files.paths import ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker

MAX_MATCHES = 200
MAX_CONTENT_BYTES = 1_000_000
_MAX_LINES_PER_FILE = 5
_SNIPPET_CHARS = 200


class FileMatch(Result):
    """One file, or one line in a file."""

    path: str
    line: int | None = None
    snippet: str | None = None
    size: int | None = None

    def to_text(self) -> str:
        return self.path if self.line is None else f"{self.path}:{self.line}: {self.snippet}"


class FileMatches(Result):
    """What was found, and whether that is all."""

    query: str
    matches: list[FileMatch]
    files_seen: int
    truncated: bool = False
    notice: str | None = None

    def to_text(self) -> str:
        lines = [match.to_text() for match in self.matches] or [f"Nothing found in {self.files_seen} entries."]
        return "\n".join([*lines, *([f"[{self.notice}]"] if self.notice else [])])


class FileSearchTools:
    def __init__(self, operations: FileOperations) -> None:
        self._operations = operations

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def search_files(
        self,
        query: Annotated[
            str,
            Field(
                min_length=1, max_length=500, description="Part of a name, a pattern such as *.md, or words in a text"
            ),
        ],
        search_in: Annotated[Literal["workspace", "granted", "all"], Field(description="Where to look")] = "workspace",
        search_type: Annotated[
            Literal["filename", "content"], Field(description="Look at names, or at text in files under 1 MB")
        ] = "filename",
        file_types: Annotated[
            list[str] | None, Field(description='Only files with these endings, such as ["md", "txt"]')
        ] = None,
    ) -> FileMatches:
        """Find files by name (case does not count; * and ? are wildcards) or lines by content. At most 200 matches and
        10 seconds; temp/ is left out."""
        endings = _parse_endings(file_types)
        matches: list[FileMatch] = []

        def step(walker: PathWalker, stop: StopSign) -> None:
            def check_entry(folder: int, spot: ResolvedPath, status: os.stat_result) -> None:
                if len(matches) > MAX_MATCHES or not _has_ending(spot.name, endings):
                    return
                if search_type == "filename":
                    if _name_matches(spot, query):
                        size = status.st_size if stat.S_ISREG(status.st_mode) else None
                        matches.append(FileMatch(path=spot.shown, size=size))
                elif stat.S_ISREG(status.st_mode) and status.st_size < MAX_CONTENT_BYTES:
                    matches.extend(_find_lines(walker, folder, spot, query, stop))

            walk.step(walker, stop, check_entry)

        walk = FolderWalk(
            await self._operations.perform("search_files", f"{search_in}: {query}", self._find_roots(search_in))
        )
        call = current_call()
        while not walk.finished and len(matches) <= MAX_MATCHES:
            await self._operations.perform("search_files", query, step, audited=False)
            await call.progress(walk.seen, message=f"{walk.seen} entries seen, {len(matches)} matches")
        cut = len(matches) > MAX_MATCHES
        notice = f"Only the first {MAX_MATCHES} matches are shown; make the query narrower." if cut else walk.limit
        return FileMatches(
            query=query,
            matches=matches[:MAX_MATCHES],
            files_seen=walk.seen,
            truncated=notice is not None,
            notice=notice,
        )

    def _find_roots(self, search_in: str):
        def begin(walker: PathWalker, stop: StopSign) -> list[ResolvedPath]:
            places = self._operations.places
            roots = [places.workspace] if search_in != "granted" else []
            if search_in != "workspace":
                roots += map(places.root_of, places.grants.current())
            return [ResolvedPath(root, ()) for root in roots]

        return begin


def _parse_endings(file_types: list[str] | None) -> tuple[str, ...]:
    endings = tuple(f".{kind.strip().lstrip('*').lstrip('.').casefold()}" for kind in file_types or ())
    if "." in endings:
        raise InvalidArguments("A file type is empty; write it as in md or .md.", field="file_types")
    return endings


def _has_ending(name: str, endings: tuple[str, ...]) -> bool:
    return not endings or name.casefold().endswith(endings)


def _name_matches(spot: ResolvedPath, query: str) -> bool:
    text = (spot.shown if "/" in query else spot.name).casefold()
    wanted = query.casefold()
    if any(char in query for char in "*?["):
        return fnmatch.fnmatchcase(text, wanted)
    return wanted in text


def _find_lines(walker: PathWalker, folder: int, spot: ResolvedPath, query: str, stop: StopSign) -> list[FileMatch]:
    try:
        with walker.open_file(folder, spot) as (descriptor, _):
            data = b"".join(iter_chunks(descriptor, stop))
    except (OSError, AnnabelleError):
        return []  # gone, unreadable or not a plain file
    if is_binary(data):
        return []
    wanted = query.casefold()
    found: list[FileMatch] = []
    for number, line in enumerate(decode_text(data, whole=True).text.splitlines(), start=1):
        position = line.casefold().find(wanted)
        if position >= 0:
            start = max(0, position - _SNIPPET_CHARS // 2)
            found.append(FileMatch(path=spot.shown, line=number, snippet=line[start : start + _SNIPPET_CHARS].strip()))
            if len(found) == _MAX_LINES_PER_FILE:
                break
    return found
