"""Tools that look at pictures and archives from outside."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from annabelle.servers.documents.desk import Desk, Path, name_of
from annabelle.servers.documents.questions import ListMembers, MembersAnswer, PictureAnswer, TellPicture
from annabelle.servers.kit import Result, tool

_SHOWN = 300


class ImageInfo(Result):
    """What is known of a picture."""

    path: str
    size: int = Field(description="Bytes")
    format: str
    width: int
    height: int
    mode: str
    frames: int
    taken: str | None = Field(default=None, description="When, by the camera's clock")
    camera: str | None = None
    lens: str | None = None
    orientation: int | None = None
    latitude: float | None = Field(default=None, description="Where it was taken, in degrees north")
    longitude: float | None = Field(default=None, description="In degrees east")
    altitude: float | None = Field(default=None, description="In meters")
    other: dict[str, str] = Field(default_factory=dict)


class ArchiveMember(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    size: int
    kind: str
    modified: str | None = None
    warning: str | None = Field(default=None, description="Why to be careful with it")


class ArchiveList(Result):
    """What is in an archive."""

    path: str
    kind: str
    members: list[ArchiveMember]
    count: int = Field(description="How many there are in all")
    size: int = Field(description="Bytes they unpack to, as the archive says")
    complete: bool = Field(default=True, description="Whether the archive was read to its end")

    def text(self) -> str:
        lines = [
            f"{member.name} ({member.size} bytes){f' [{member.warning}]' if member.warning else ''}"
            for member in self.members[:_SHOWN]
        ]
        rest = self.count - len(lines)
        more = [f"[{rest} more]"] if rest > 0 else []
        return "\n".join([f"{self.path}: {self.count} entries, {self.size} bytes unpacked", *lines, *more])


class Looking:
    """get_image_info and list_archive."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def get_image_info(self, path: Path) -> ImageInfo:
        """Tell the facts of a picture: size, format, when and with what it was taken, and where, if the camera wrote
        that down."""
        shown, size, found = await self._desk.ask(path, TellPicture(name=name_of(path)), PictureAnswer)
        return ImageInfo.model_validate({"path": shown, "size": size, **found.facts})

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def list_archive(self, path: Path) -> ArchiveList:
        """List what is in a zip or tar archive, without unpacking anything. Names that would lead outside are
        marked."""
        shown, _, found = await self._desk.ask(path, ListMembers(name=name_of(path)), MembersAnswer)
        return ArchiveList.model_validate({"path": shown, "kind": found.kind, **found.contents})
