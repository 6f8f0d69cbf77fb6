"""`/backups`: backups of the whole home, without its secrets. With them: the terminal."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

from fastapi import Response
from pydantic import Field
from starlette.responses import FileResponse

from annabelle.core.errors import NotFound
from annabelle.core.messages import now
from annabelle.hub.api.endpoint import ApiAnswer, ApiRouter, Responses, TheHub, document
from annabelle.hub.context import HubContext
from annabelle.store.home_backup import back_up_on_request, list_backups

router = ApiRouter("backups")
_FILE: Responses = {200: {"description": "The file", "content": {"application/zip": {}}}}


class BackupView(ApiAnswer):
    name: str
    path: str = Field(description="Where it is on the machine of the hub")
    size: int
    made_at: datetime


class HomeBackupList(ApiAnswer):
    backups: list[BackupView] = Field(description="The newest first")


class MadeBackup(BackupView):
    left_out: list[str] = Field(description="What the home needs and the backup does not hold")


@router.get("/backups", **document("Backups that are kept in the home"))
async def list_home_backups(hub: TheHub) -> HomeBackupList:
    """Those of every night, and those that were asked for."""
    found = await asyncio.to_thread(lambda: [_view(path) for path in list_backups(hub.base.home)])
    return HomeBackupList(backups=found[::-1])


@router.post("/backups", status_code=201, **document("Make a backup", 409))
async def make_backup(hub: TheHub) -> MadeBackup:
    """Answers when it is written. Keys, tokens, accounts and the audit are not in it: that takes a passphrase, and the
    terminal. It stays until it is deleted."""
    report = await asyncio.to_thread(back_up_on_request, hub.base.home, hub.base.settings, now())
    return MadeBackup(**_view(Path(report.file)).model_dump(), left_out=report.left_out)


@router.get("/backups/{name}", response_class=FileResponse, **document("Download a backup", 404, more=_FILE))
async def download_backup(name: str, hub: TheHub) -> FileResponse:
    """Whoever has the file can read everything in it."""
    path = await asyncio.to_thread(_find, hub, name)
    return FileResponse(path, media_type="application/zip", filename=path.name, headers={"Cache-Control": "no-store"})


@router.post("/backups/{name}/delete", status_code=204, **document("Delete a backup", 404))
async def delete_backup(name: str, hub: TheHub) -> Response:
    """For good."""
    await asyncio.to_thread(lambda: _find(hub, name).unlink(missing_ok=True))
    return Response(status_code=204)


@router.post(
    "/backups/{name}/restore", status_code=202, response_class=Response, **document("Restart with a backup", 400, 404)
)
async def restore_backup(name: str, hub: TheHub) -> Response:
    """It is checked first, and restored before the next start, which follows at once. What is there now is moved aside.
    Settings, keys, tokens, accounts, people and the audit stay as they are. A notice tells what came of it."""
    from annabelle.store.home_restore import request_restore  # noqa: PLC0415  a hub rarely restores

    await asyncio.to_thread(lambda: request_restore(hub.base.home, _find(hub, name)))
    hub.base.lifecycle.restart()
    return Response(status_code=202)


def _find(hub: HubContext, name: str) -> Path:
    found = next((path for path in list_backups(hub.base.home) if path.name == name), None)
    if found is None:
        raise NotFound(f"There is no backup {name}.")
    return found


def _view(path: Path) -> BackupView:
    about = path.stat()
    made = datetime.fromtimestamp(about.st_mtime, UTC)
    return BackupView(name=path.name, path=str(path), size=about.st_size, made_at=made)
