"""Tools that tell what is allowed, and what the user would have to allow."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from annabelle.core.errors import NotAllowed
from annabelle.servers.filer.desk import Desk
from annabelle.servers.kit import Result, StopSign, tool
from annabelle.servers.kit.files.descend import Walker
from annabelle.servers.kit.files.grants import Permission
from annabelle.servers.kit.files.places import Spot

Access = Literal["none", "read", "read-write"]
Path = Annotated[str, Field(description="The path in question")]


class GrantCheck(Result):
    """What may be done at a path."""

    path: str
    access: Access
    reason: str
    notices: list[str] = Field(default_factory=list, description="What is wrong with the grants file, if anything")

    def text(self) -> str:
        return " ".join([f"{self.path}: {self.access}. {self.reason}", *self.notices])


class GrantAnswer(Result):
    """Whether access is there, impossible, or up to the user."""

    path: str
    permission: Permission
    status: Literal["granted", "denied", "configure_required"]
    message: str = Field(description="What to tell the user")

    def text(self) -> str:
        return f"{self.status}: {self.message}"


class GrantLine(BaseModel):
    """One folder or file the user has opened."""

    model_config = ConfigDict(frozen=True)

    path: str
    permission: Permission
    reason: str | None = None


class GrantList(Result):
    """Everything the user has opened beside the workspace."""

    grants: list[GrantLine]
    file: str = Field(description="The file the user edits to change this")
    notices: list[str] = Field(default_factory=list, description="What is wrong with the grants file, if anything")

    def text(self) -> str:
        lines = [f"{grant.path}: {grant.permission}" for grant in self.grants] or ["No folder is granted."]
        return "\n".join([*lines, *self.notices])


class Granting:
    """check_grant, request_grant and list_grants. None of them grants anything."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def check_grant(self, path: Path) -> GrantCheck:
        """Tell whether a path may be read or written, and why."""

        def work(walker: Walker, stop: StopSign) -> GrantCheck:
            found = self._desk.places.locate(path)
            notices = list(self._desk.places.grants.notices())
            if isinstance(found, NotAllowed):
                return GrantCheck(path=path, access="none", reason=found.message, notices=notices)
            where = "It is in the workspace." if found.root.workspace else "The user has granted it."
            return GrantCheck(path=found.shown, access=_access(found), reason=where, notices=notices)

        return await self._desk.perform("check_grant", path, work)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def request_grant(
        self,
        path: Annotated[str, Field(description="Absolute path of the folder or file that is needed")],
        permission: Annotated[Permission, Field(description="What is needed")],
        reason: Annotated[str, Field(min_length=1, max_length=500, description="Why, in words for the user")],
    ) -> GrantAnswer:
        """Ask for access to a path outside the workspace. This never grants anything by itself: it answers granted,
        denied, or configure_required with what the user has to do."""

        def work(walker: Walker, stop: StopSign) -> GrantAnswer:
            found = self._desk.places.locate(path)
            if isinstance(found, Spot):
                access = _access(found)
                if permission == "read" or access == "read-write":
                    message = f"{found.shown} can already be used ({access})."
                    return GrantAnswer(path=found.shown, permission=permission, status="granted", message=message)
                target = str(found.path)
            elif self._desk.places.can_be_granted(path):
                target = self._desk.places.full(path)
            else:
                message = f"{found.message} {found.hint}"
                return GrantAnswer(path=path, permission=permission, status="denied", message=message)
            line = json.dumps({"path": target, "permission": permission, "reason": reason}, ensure_ascii=False)
            file = self._desk.places.grants.file
            return GrantAnswer(
                path=target,
                permission=permission,
                status="configure_required",
                message=f'If you agree, add {line} to the list "grants" in {file}; it takes effect at once.',
            )

        return await self._desk.perform("request_grant", path, work)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_grants(self) -> GrantList:
        """List the folders and files outside the workspace that the user has granted."""

        def work(walker: Walker, stop: StopSign) -> GrantList:
            grants = self._desk.places.grants
            lines = [
                GrantLine(path=str(grant.path), permission=grant.permission, reason=grant.reason)
                for grant in grants.current()
            ]
            return GrantList(grants=lines, file=str(grants.file), notices=list(grants.notices()))

        return await self._desk.perform("list_grants", "", work)


def _access(spot: Spot) -> Access:
    return "read-write" if spot.root.writable else "read"
