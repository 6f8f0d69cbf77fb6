"""QR codes: what is drawn can be read again, and a picture that is none or too large is refused."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path

import pytest
from PIL import Image

from annabelle.core.errors import AnnabelleError, Conflict, InvalidArguments, NotAllowed, NotFound, TooLarge
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")


@pytest.mark.parametrize("text", ["https://example.com/a?b=c", "WIFI:T:WPA;S:Café;P:s3cret;;", "Grüße 你好 👋", "1"])
async def test_a_code_that_was_drawn_can_be_read(ask: CallTool, workspace: Path, text: str) -> None:
    made = await ask("make_qr_code", text=text)
    assert made.path.startswith("Images/qr-")
    assert (workspace / made.path).stat().st_size == made.size
    read = await ask("read_qr_code", path=made.path)
    assert [code.text for code in read.codes] == [text]


async def test_a_code_is_drawn_where_it_was_asked_for_and_replaces_nothing(ask: CallTool, workspace: Path) -> None:
    made = await ask("make_qr_code", text="x", path="Documents/code.svg", format="svg", scale=3)
    assert (workspace / made.path).read_text().startswith("<?xml")
    with pytest.raises(Conflict):
        await ask("make_qr_code", text="y", path="Documents/code.svg", format="svg")
    with pytest.raises(InvalidArguments, match=r"must end in \.png"):
        await ask("make_qr_code", text="y", path="Documents/code.exe")
    with pytest.raises(AnnabelleError):
        await ask("make_qr_code", text="y", path="../code.png")


async def test_a_text_that_does_not_fit_is_refused(ask: CallTool) -> None:
    with pytest.raises(TooLarge, match="does not fit"):
        await ask("make_qr_code", text="ü" * 4000)


async def test_a_picture_without_a_code_says_so(ask: CallTool, workspace: Path) -> None:
    await ask("make_qr_code", text="x")
    Image.new("RGB", (50, 50)).save(workspace / "Images/black.jpg")
    assert "no readable code" in (await ask("read_qr_code", path="Images/black.jpg")).to_text()


def png_of(width: int, height: int) -> bytes:
    """A picture that claims a size and has no pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("size", [(7000, 7000), (11_000, 11_000), (60_000, 60_000)])
async def test_a_picture_of_too_many_pixels_is_not_unpacked(
    ask: CallTool, made_workspace: Path, size: tuple[int, int]
) -> None:
    (made_workspace / "bomb.png").write_bytes(png_of(*size))
    with pytest.raises(TooLarge, match="pixels"):
        await ask("read_qr_code", path="bomb.png")


async def test_what_is_no_picture_is_a_clear_sentence(ask: CallTool, made_workspace: Path) -> None:
    whole = io.BytesIO()
    Image.new("L", (200, 200)).save(whole, "PNG")
    for name, data in {"a.png": b"text", "b.png": b"", "c.png": whole.getvalue()[:60], "d.eps": b"%!PS-Adobe"}.items():
        (made_workspace / name).write_bytes(data)
        with pytest.raises(InvalidArguments, match="not a picture"):
            await ask("read_qr_code", path=name)
    with pytest.raises(NotFound):
        await ask("read_qr_code", path="none.png")
    with pytest.raises(NotAllowed):
        await ask("read_qr_code", path="/etc/passwd")
