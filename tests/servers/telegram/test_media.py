"""Files go from the workspace to Telegram and from Telegram into the workspace, and never over another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from annabelle.core.errors import AnnabelleError, Conflict, InvalidArguments, NotAllowed, NotFound, TooLarge
from annabelle.servers.kit import Call
from annabelle.servers.kit.call import enter_call
from annabelle.servers.telegram import messages
from servers.speaking import CallTool
from support.telegram_double import TelegramDouble

pytestmark = pytest.mark.req("SRV-TEL")


async def test_a_file_of_the_workspace_is_sent_with_its_name_and_progress(
    telegram: TelegramDouble, tool: CallTool, files: Path
) -> None:
    (files / "Straße.txt").write_bytes(b"map" * 1000)
    steps: list[tuple[float, float | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        steps.append((done, total))

    enter_call(Call(_progress=note))
    sent = await tool("send_media", chat_id="@ada", file_path="Straße.txt", caption="the map **as is**")
    message = telegram.messages[11][-1]
    assert (message.id, message.message, message.file.name) == (sent.message_id, "the map **as is**", "Straße.txt")
    assert telegram.files[message.id] == b"map" * 1000
    assert steps[-1] == (3000, 3000)


async def test_what_may_not_be_read_is_not_sent(
    telegram: TelegramDouble, tool: CallTool, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files / "link").symlink_to("/etc/passwd")
    for path in ("/etc/passwd", "../annabelle.token", "link", "no.txt", "a\x00b"):
        with pytest.raises(AnnabelleError):
            await tool("send_media", chat_id="@ada", file_path=path)
    (files / "big").write_bytes(b"x" * 2000)
    monkeypatch.setattr(messages, "MAX_BYTES", 1000)
    with pytest.raises(TooLarge):
        await tool("send_media", chat_id="@ada", file_path="big")
    assert telegram.requests == []


async def test_a_download_lands_where_it_was_asked_for(telegram: TelegramDouble, tool: CallTool, files: Path) -> None:
    message = telegram.write_file(11, b"x" * 150_000, "report.pdf")
    kept = await tool("download_media", chat_id="11", message_id=message.id, output_path="Documents/new/r.pdf")
    assert (kept.path, kept.size) == ("Documents/new/r.pdf", 150_000)
    assert (files / "Documents/new/r.pdf").read_bytes() == b"x" * 150_000
    with pytest.raises(Conflict):
        await tool("download_media", chat_id="11", message_id=message.id, output_path="Documents/new/r.pdf")
    first = await tool("download_media", chat_id="11", message_id=message.id, output_path="Downloads/")
    second = await tool("download_media", chat_id="11", message_id=message.id, output_path="Downloads/")
    assert (first.path, second.path) == ("Downloads/report.pdf", "Downloads/report (2).pdf")


async def test_a_name_from_outside_can_not_lead_out_of_the_folder(
    telegram: TelegramDouble, tool: CallTool, files: Path
) -> None:
    evil = telegram.write_file(11, b"x", "../../../.bashrc\x1b[31m")
    unnamed = telegram.write_file(11, b"y", None, "image/png")
    kept = await tool("download_media", chat_id="11", message_id=evil.id, output_path="Downloads/")
    assert Path(kept.path).parent == Path("Downloads")
    assert (files / kept.path).read_bytes() == b"x"
    plain = await tool("download_media", chat_id="11", message_id=unnamed.id, output_path="Downloads/")
    assert plain.path == f"Downloads/2026-03-01-{unnamed.id}.png"


async def test_a_download_that_can_not_be_is_refused_and_leaves_nothing(
    telegram: TelegramDouble, tool: CallTool, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, file = telegram.write(11, "no file"), telegram.write_file(11, b"x" * 3000, "a.bin")
    with pytest.raises(InvalidArguments, match="carries no file"):
        await tool("download_media", chat_id="11", message_id=text.id, output_path="a.bin")
    with pytest.raises(NotFound, match="no message 999"):
        await tool("download_media", chat_id="11", message_id=999, output_path="a.bin")
    with pytest.raises(NotAllowed):
        await tool("download_media", chat_id="11", message_id=file.id, output_path="/etc/a.bin")
    monkeypatch.setattr(messages, "MAX_BYTES", 1000)
    with pytest.raises(TooLarge, match="3000 bytes"):
        await tool("download_media", chat_id="11", message_id=file.id, output_path="a.bin")
    telegram.messages[11][-1].file.media.size = 10  # Telegram said less than it then sends
    with pytest.raises(TooLarge):
        await tool("download_media", chat_id="11", message_id=file.id, output_path="a.bin")
    assert not (files / "a.bin").exists()
