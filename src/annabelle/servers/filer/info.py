"""Tools that describe the workspace, its audit log, and the user's grants."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field

from annabelle.core.errors import InvalidArguments, NotAllowed
from annabelle.core.result_text import format_size
from annabelle.servers.filer.folder_walk import FolderWalk
from annabelle.servers.filer.operations import AuditEntry, FileOperations
from annabelle.servers.kit import Result, StopSign, current_call, tool
from annabelle.servers.kit.files.paths import Permission, ResolvedPath
from annabelle.servers.kit.files.walker import PathWalker

MAX_AUDIT_ENTRIES = 1000


class FolderSize(Result):
    """One folder of the workspace and what is in it, at any depth."""

    name: str
    files: int
    bytes: int


class WorkspaceInfo(Result):
    """The workspace at a glance."""

    path: str
    folders: list[FolderSize]
    files: int
    bytes: int
    free_bytes: int
    granted_folders: int
    truncated: bool = False

    def to_text(self) -> str:
        folders = ", ".join(f"{folder.name} ({folder.files})" for folder in self.folders)
        return (
            f"The workspace {self.path} holds {self.files} files ({format_size(self.bytes)}); "
            f"{format_size(self.free_bytes)} are free."
            f"{f' Folders: {folders}.' if folders else ''}{' The count is not complete.' if self.truncated else ''}"
        )


class AuditLog(Result):
    """What was done, newest first."""

    entries: list[AuditEntry]
    truncated: bool = False

    def to_text(self) -> str:
        lines = [
            f"{entry.time:%Y-%m-%d %H:%M:%S} {entry.operation} {entry.path}"
            f"{f' -> {entry.destination}' if entry.destination else ''}: {entry.result}"
            for entry in self.entries
        ]
        return "\n".join([*(lines or ["Nothing recorded."]), *(["[There are more.]"] if self.truncated else [])])


class FileInfoTools:
    def __init__(self, operations: FileOperations) -> None:
        self._operations = operations

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_workspace_info(self) -> WorkspaceInfo:
        """Tell where the workspace is, which folders it has, how much is in them and how much disk is free."""
        root = self._operations.places.workspace
        walk = FolderWalk([ResolvedPath(root, ())], skip_temp=False)
        counts: dict[str, list[int]] = {}
        total = [0, 0]

        def step(walker: PathWalker, stop: StopSign) -> None:
            for entry in walk.step(walker, stop):
                top, *rest = entry.path.split("/")
                if entry.kind == "folder" and not rest:
                    counts.setdefault(top, [0, 0])
                elif entry.kind == "file":
                    for count in (total, counts.setdefault(top, [0, 0])) if rest else (total,):
                        count[0] += 1
                        count[1] += entry.size or 0

        def sum_up(walker: PathWalker, stop: StopSign) -> WorkspaceInfo:
            folders = [FolderSize(name=name, files=count[0], bytes=count[1]) for name, count in sorted(counts.items())]
            return WorkspaceInfo(
                path=str(root.path),
                folders=folders,
                files=total[0],
                bytes=total[1],
                free_bytes=shutil.disk_usage(root.path).free,
                granted_folders=len(self._operations.places.grants.current()),
                truncated=walk.limit is not None,
            )

        while not walk.finished:
            await self._operations.perform("get_workspace_info", ".", step, audited=False)
            await current_call().progress(walk.seen, message=f"{walk.seen} entries counted")
        return await self._operations.perform("get_workspace_info", ".", sum_up)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_audit_log(
        self,
        path_filter: Annotated[
            str | None, Field(description="Only paths with this in them, or matching a pattern")
        ] = None,
        operation_filter: Annotated[str | None, Field(description="Only this operation, such as delete_file")] = None,
        date_from: Annotated[
            str | None, Field(description="Only from this time on, as in 2026-01-31 or 2026-01-31T08:00")
        ] = None,
        limit: Annotated[int, Field(ge=1, le=MAX_AUDIT_ENTRIES, description="How many entries at most")] = 100,
    ) -> AuditLog:
        """Show what was done with files, newest first: time, operation, path, result, and for whom. Refused operations
        are in it too."""
        since = None if date_from is None else _parse_time(date_from)
        user = current_call().user_id

        def search(walker: PathWalker, stop: StopSign) -> AuditLog:
            entries, more = self._operations.audit.search(path_filter, operation_filter, since, user, limit)
            return AuditLog(entries=entries, truncated=more)

        return await self._operations.perform("get_audit_log", path_filter or "", search)


def _parse_time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidArguments(
            f"{text[:40]!r} is not a date.", hint="Write it as in 2026-01-31 or 2026-01-31T08:00.", field="date_from"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


GrantAccess = Literal["none", "read", "read-write"]
GrantPath = Annotated[str, Field(description="The path in question")]


class GrantCheck(Result):
    """What may be done at a path."""

    path: str
    access: GrantAccess
    reason: str
    notices: list[str] = Field(default_factory=list, description="What is wrong with the grants file, if anything")

    def to_text(self) -> str:
        return " ".join([f"{self.path}: {self.access}. {self.reason}", *self.notices])


class GrantAnswer(Result):
    """Whether access is there, impossible, or up to the user."""

    path: str
    permission: Permission
    status: Literal["granted", "denied", "configure_required"]
    message: str = Field(description="What to tell the user")

    def to_text(self) -> str:
        return f"{self.status}: {self.message}"


class GrantLine(Result):
    """One folder or file the user has opened."""

    path: str
    permission: Permission
    reason: str | None = None


class GrantList(Result):
    """Everything the user has opened beside the workspace."""

    grants: list[GrantLine]
    file: str = Field(description="The file the user edits to change this")
    notices: list[str] = Field(default_factory=list, description="What is wrong with the grants file, if anything")

    def to_text(self) -> str:
        lines = [f"{grant.path}: {grant.permission}" for grant in self.grants] or ["No folder is granted."]
        return "\n".join([*lines, *self.notices])


class FileGrantTools:
    """None of these tools grants anything."""

    def __init__(self, operations: FileOperations) -> None:
        self._operations = operations

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def check_grant(self, path: GrantPath) -> GrantCheck:
        """Tell whether a path may be read or written, and why."""

        def check(walker: PathWalker, stop: StopSign) -> GrantCheck:
            found = self._operations.places.try_resolve(path)
            notices = list(self._operations.places.grants.notices())
            if isinstance(found, NotAllowed):
                return GrantCheck(path=path, access="none", reason=found.message, notices=notices)
            where = "It is in the workspace." if found.root.workspace else "The user has granted it."
            return GrantCheck(path=found.shown, access=_access_at(found), reason=where, notices=notices)

        return await self._operations.perform("check_grant", path, check)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def request_grant(
        self,
        path: Annotated[str, Field(description="Absolute path of the folder or file that is needed")],
        permission: Annotated[Permission, Field(description="What is needed")],
        reason: Annotated[str, Field(min_length=1, max_length=500, description="Why, in words for the user")],
    ) -> GrantAnswer:
        """Ask for access to a path outside the workspace. This never grants anything by itself: it answers granted,
        denied, or configure_required with what the user has to do."""

        def request(walker: PathWalker, stop: StopSign) -> GrantAnswer:
            found = self._operations.places.try_resolve(path)
            if isinstance(found, ResolvedPath):
                access = _access_at(found)
                if permission == "read" or access == "read-write":
                    message = f"{found.shown} can already be used ({access})."
                    return GrantAnswer(path=found.shown, permission=permission, status="granted", message=message)
                target = str(found.path)
            elif self._operations.places.can_be_granted(path):
                target = self._operations.places.to_absolute(path)
            else:
                message = f"{found.message} {found.hint}"
                return GrantAnswer(path=path, permission=permission, status="denied", message=message)
            line = json.dumps({"path": target, "permission": permission, "reason": reason}, ensure_ascii=False)
            file = self._operations.places.grants.file
            return GrantAnswer(
                path=target,
                permission=permission,
                status="configure_required",
                message=f'If you agree, add {line} to the list "grants" in {file}; it takes effect at once.',
            )

        return await self._operations.perform("request_grant", path, request)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_grants(self) -> GrantList:
        """List the folders and files outside the workspace that the user has granted."""

        def list_current(walker: PathWalker, stop: StopSign) -> GrantList:
            grants = self._operations.places.grants
            lines = [
                GrantLine(path=str(grant.path), permission=grant.permission, reason=grant.reason)
                for grant in grants.current()
            ]
            return GrantList(grants=lines, file=str(grants.file), notices=list(grants.notices()))

        return await self._operations.perform("list_grants", "", list_current)


def _access_at(spot: ResolvedPath) -> GrantAccess:
    return "read-write" if spot.root.writable else "read"
