"""Tools that tell about the workspace and about what was done in it."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import InvalidArguments
from annabelle.servers.filer.audit import AuditEntry
from annabelle.servers.filer.desk import Desk
from annabelle.servers.filer.survey import Survey
from annabelle.servers.kit import Result, StopSign, current_call, tool
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.places import Spot

MAX_AUDIT_ENTRIES = 1000


class FolderSize(BaseModel):
    """One folder of the workspace and what is in it, at any depth."""

    model_config = ConfigDict(frozen=True)

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

    def text(self) -> str:
        folders = ", ".join(f"{folder.name} ({folder.files})" for folder in self.folders)
        return (
            f"The workspace {self.path} holds {self.files} files ({self.bytes} bytes); {self.free_bytes} are free. "
            f"Folders: {folders}.{' The count is not complete.' if self.truncated else ''}"
        )


class AuditLog(Result):
    """What was done, newest first."""

    entries: list[AuditEntry]
    truncated: bool = False

    def text(self) -> str:
        lines = [
            f"{entry.time:%Y-%m-%d %H:%M:%S} {entry.operation} {entry.path}"
            f"{f' -> {entry.destination}' if entry.destination else ''}: {entry.result}"
            for entry in self.entries
        ]
        return "\n".join([*(lines or ["Nothing recorded."]), *(["[There are more.]"] if self.truncated else [])])


class Overview:
    """get_workspace_info and get_audit_log."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_workspace_info(self) -> WorkspaceInfo:
        """Tell where the workspace is, which folders it has, how much is in them and how much disk is free."""
        root = self._desk.places.workspace
        survey = Survey([Spot(root, ())], skip_temp=False)
        counts: dict[str, list[int]] = {}
        total = [0, 0]

        def step(walker: Walker, stop: StopSign) -> None:
            for entry in survey.step(walker, stop):
                top, *rest = entry.path.split("/")
                if entry.kind == "folder" and not rest:
                    counts.setdefault(top, [0, 0])
                elif entry.kind == "file":
                    for count in (total, counts.setdefault(top, [0, 0])) if rest else (total,):
                        count[0] += 1
                        count[1] += entry.size or 0

        def sum_up(walker: Walker, stop: StopSign) -> WorkspaceInfo:
            folders = [FolderSize(name=name, files=count[0], bytes=count[1]) for name, count in sorted(counts.items())]
            return WorkspaceInfo(
                path=str(root.path),
                folders=folders,
                files=total[0],
                bytes=total[1],
                free_bytes=shutil.disk_usage(root.path).free,
                granted_folders=len(self._desk.places.grants.current()),
                truncated=survey.limit is not None,
            )

        while not survey.over:
            await self._desk.perform("get_workspace_info", ".", step, audited=False)
            await current_call().progress(survey.seen, message=f"{survey.seen} entries counted")
        return await self._desk.perform("get_workspace_info", ".", sum_up)

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
        since = None if date_from is None else _time(date_from)
        user = current_call().user_id

        def work(walker: Walker, stop: StopSign) -> AuditLog:
            entries, more = self._desk.audit.search(path_filter, operation_filter, since, user, limit)
            return AuditLog(entries=entries, truncated=more)

        return await self._desk.perform("get_audit_log", path_filter or "", work)


def _time(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidArguments(
            f"{text[:40]!r} is not a date.", hint="Write it as in 2026-01-31 or 2026-01-31T08:00.", field="date_from"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
