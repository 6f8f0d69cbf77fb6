"""Pictures' facts and archives' lists."""

from __future__ import annotations

import io

import pytest
from PIL import Image

from annabelle.core.errors import InvalidArguments, TooLarge
from servers.documents import papers
from servers.documents.conftest import Put
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")


async def test_a_photo_tells_when_where_and_with_what_it_was_taken(ask: CallTool, put: Put) -> None:
    data = papers.photo()
    info = await ask("get_image_info", path=put("a.jpg", data))
    assert (info.format, info.width, info.height, info.size) == ("JPEG", 40, 30, len(data))
    assert (info.taken, info.camera, info.orientation) == ("2026:03:01 10:20:30", "Canon EOS R5", 6)
    assert (info.latitude, info.longitude, info.altitude) == (52.5, -13.26, 35.5)


@pytest.mark.parametrize("kind", ["PNG", "GIF", "WEBP", "BMP", "TIFF"])
async def test_pictures_without_such_facts_are_told_of_too(ask: CallTool, put: Put, kind: str) -> None:
    out = io.BytesIO()
    Image.new("RGB", (7, 5)).save(out, kind)
    info = await ask("get_image_info", path=put(f"a.{kind.lower()}", out.getvalue()))
    assert (info.format, info.width, info.height, info.latitude, info.frames) == (kind, 7, 5, None, 1)


async def test_a_picture_that_claims_too_much_or_is_none_is_refused(ask: CallTool, put: Put) -> None:
    with pytest.raises(TooLarge, match="pixels"):
        await ask("get_image_info", path=put("a.png", papers.huge_png()))
    for data in (b"", b"text", papers.photo()[:20], b"\x89PNG\r\n\x1a\n"):
        with pytest.raises(InvalidArguments, match="not a picture"):
            await ask("get_image_info", path=put("b.png", data))


async def test_what_is_in_an_archive_is_listed_and_stays_there(ask: CallTool, put: Put) -> None:
    members: dict[str, str | bytes] = {"a.txt": "hello", "folder/b.txt": "x", "../../evil.sh": "y", "/etc/passwd": "z"}
    found = await ask("list_archive", path=put("a.zip", papers.zipped(members)))
    assert [(member.name, member.size) for member in found.members][:2] == [("a.txt", 5), ("folder/b.txt", 1)]
    assert [member.warning for member in found.members[2:]] == ["leads outside of the archive"] * 2
    assert (found.count, found.size) == (4, 8)


@pytest.mark.parametrize("mode", ["w", "w:gz", "w:bz2", "w:xz"])
async def test_tar_archives_are_listed_however_they_are_packed(ask: CallTool, put: Put, mode: str) -> None:
    found = await ask("list_archive", path=put("a.tar", papers.tarred({"a.txt": b"hello"}, mode)))
    assert [(member.name, member.kind, member.warning) for member in found.members] == [
        ("a.txt", "file", None),
        ("link", "link or device", "a link"),
    ]


async def test_a_large_archive_is_listed_in_part(ask: CallTool, put: Put) -> None:
    members: dict[str, str | bytes] = {f"{number}.txt": "" for number in range(1200)}
    found = await ask("list_archive", path=put("a.zip", papers.zipped(members)))
    assert (len(found.members), found.count) == (1000, 1200)
    assert found.to_text().endswith("[900 more]")


async def test_office_files_are_archives_too_and_text_is_none(ask: CallTool, put: Put) -> None:
    assert any(
        member.name == "word/document.xml"
        for member in (await ask("list_archive", path=put("a.docx", papers.word()))).members
    )
    for data in (b"text", b"PK\x03\x04 broken", b"\x1f\x8b broken"):
        with pytest.raises(InvalidArguments):
            await ask("list_archive", path=put("b.zip", data))
