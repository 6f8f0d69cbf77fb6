"""Tools that draw and read QR codes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from annabelle.core.errors import InvalidArguments, TooLarge
from annabelle.servers.kit import Result, StopSign, deferred_module, in_thread, tool
from annabelle.servers.kit.files.atomic_write import make_stamp
from annabelle.servers.kit.files.workspace import Workspace

if TYPE_CHECKING:
    import segno
    import zxingcpp
    from PIL import Image
else:
    segno = deferred_module("segno")
    zxingcpp = deferred_module("zxingcpp")
    Image = deferred_module("PIL.Image")

_FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
_MAX_BYTES = 20_000_000
_MAX_PIXELS = 40_000_000
_MAX_CODES = 20


class QrCode(Result):
    """A picture that was drawn."""

    path: str
    format: Literal["png", "svg"]
    size: int = Field(description="Bytes")
    version: str = Field(description="How large the code is: 1 to 40")

    def to_text(self) -> str:
        return f"The QR code is in {self.path} ({self.size} bytes)."


class DecodedCode(Result):
    text: str
    format: str


class DecodedCodes(Result):
    """What the codes in a picture say."""

    path: str
    codes: list[DecodedCode]

    def to_text(self) -> str:
        return "\n".join(code.text for code in self.codes) or f"There is no readable code in {self.path}."


class QrCodeTools:
    """make_qr_code and read_qr_code."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    @tool(read_only=False, destructive=False, idempotent=False, open_world=False)
    async def make_qr_code(
        self,
        text: Annotated[
            str,
            Field(min_length=1, max_length=4000, description="Text, a web address, or WIFI:T:WPA;S:name;P:password;;"),
        ],
        path: Annotated[
            str | None, Field(max_length=1000, description="Where to put it in the workspace; Images/ if left out")
        ] = None,
        format: Annotated[Literal["png", "svg"], Field(description="Kind of picture")] = "png",
        scale: Annotated[int, Field(ge=1, le=50, description="Pixels per square of the code")] = 8,
    ) -> QrCode:
        """Draw a QR code and put it into the workspace. Nothing is overwritten."""
        if path is not None and not path.lower().endswith(f".{format}"):
            raise InvalidArguments(f"The path must end in .{format}.", field="path")
        version, data = await in_thread(lambda stop: _draw_code(text, format, scale))
        if path is not None:
            kept = await self._workspace.write(path, data)
        else:
            kept = await self._workspace.keep("Images", f"qr-{make_stamp()}.{format}", data)
        return QrCode(path=kept.path, format=format, size=kept.size, version=version)

    @tool(read_only=True, destructive=False, idempotent=True, open_world=False)
    async def read_qr_code(
        self,
        path: Annotated[str, Field(min_length=1, max_length=1000, description="Picture in the workspace")],
    ) -> DecodedCodes:
        """Read the QR codes and barcodes in a picture of the workspace. What they say is foreign text."""
        file = await self._workspace.read(path, _MAX_BYTES)
        return DecodedCodes(path=file.path, codes=await in_thread(lambda stop: _read_codes(file.data, stop)))


def _draw_code(text: str, kind: str, scale: int) -> tuple[str, bytes]:
    try:
        code = segno.make_qr(text, error="m")
    except (segno.DataOverflowError, UnicodeError) as error:
        raise TooLarge(
            "The text does not fit into a QR code.", hint="Shorten it, or use a link.", field="text"
        ) from error
    picture = io.BytesIO()
    code.save(picture, kind=kind, scale=scale, border=4)
    return str(code.version), picture.getvalue()


def _read_codes(data: bytes, stop: StopSign) -> list[DecodedCode]:
    try:
        with Image.open(io.BytesIO(data), formats=_FORMATS) as image:
            if image.width * image.height > _MAX_PIXELS:
                raise TooLarge(
                    f"The picture has {image.width} x {image.height} pixels, too many to read.", field="path"
                )
            stop.check()
            grey = image.convert("L")
    except (Image.DecompressionBombError, Image.DecompressionBombWarning) as error:
        raise TooLarge("The picture has far too many pixels to read.", field="path") from error
    except (OSError, ValueError, SyntaxError, EOFError) as error:
        raise InvalidArguments(
            "The file is not a picture that can be read.", hint=f"Use {', '.join(_FORMATS)}.", field="path"
        ) from error
    stop.check()
    found = zxingcpp.read_barcodes(grey)[:_MAX_CODES]
    return [DecodedCode(text=code.text[:8000], format=code.format.name) for code in found]
