"""Files made to do harm: bombs, loops and lies. What they cost is bounded, and the server goes on."""

from __future__ import annotations

import asyncio
import io
import random
import signal
import tarfile
import tracemalloc

import pytest

from annabelle.core.errors import AnnabelleError, InvalidArguments, TooLarge, ToolTimeout
from annabelle.servers.documents.answers import kind_of
from annabelle.servers.documents.document_access import ThreadRunner, WorkerRunner
from annabelle.servers.documents.questions import (
    ListMembers,
    MembersAnswer,
    ReadTables,
    ReadText,
    TellFacts,
    TextAnswer,
)
from servers.documents import papers
from support.timing import seconds

pytestmark = pytest.mark.req("SRV-ALL")

DOCX = {"[Content_Types].xml": "<x/>", "word/document.xml": papers.entity_bomb()}
PPTX = {"ppt/presentation.xml": "<x/>", "ppt/slides/slide1.xml": papers.entity_bomb()}
ODT = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": papers.entity_bomb()}


@pytest.mark.parametrize("member", ["word/document.xml", "xl/workbook.xml", "ppt/presentation.xml"])
async def test_a_zip_bomb_is_not_unpacked(member: str) -> None:
    with pytest.raises(TooLarge, match="zip bomb"):
        await ThreadRunner().ask(ReadText(name="a"), papers.zip_bomb(member))


def test_telling_what_a_zip_is_unpacks_nothing_that_lies_about_its_size() -> None:
    """It is told by the server itself, before anything is handed to the process that is bounded."""
    bomb = papers.mimetype_bomb()
    tracemalloc.start()
    try:
        assert kind_of(bomb, "a.odt") == "zip"
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("members", [DOCX, PPTX, ODT])
async def test_entities_that_swell_are_refused(members: dict[str, str | bytes]) -> None:
    with pytest.raises(InvalidArguments):
        await ThreadRunner().ask(ReadText(name="a"), papers.zipped(members))


async def test_an_excel_file_with_entities_is_refused() -> None:
    members: dict[str, str | bytes] = {}
    with papers.zipfile.ZipFile(io.BytesIO(papers.excel())) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    members["xl/worksheets/sheet1.xml"] = papers.entity_bomb()
    with pytest.raises(InvalidArguments):
        await ThreadRunner().ask(ReadText(name="a", sheet="Costs"), papers.zipped(members))


async def test_a_sheet_that_claims_every_cell_there_is_costs_what_it_has() -> None:
    with papers.zipfile.ZipFile(io.BytesIO(papers.excel())) as archive:
        members: dict[str, str | bytes] = {name: archive.read(name) for name in archive.namelist()}
    sheet = members["xl/worksheets/sheet1.xml"]
    assert isinstance(sheet, bytes)
    assert b'ref="A1:C4"' in sheet
    members["xl/worksheets/sheet1.xml"] = sheet.replace(b'ref="A1:C4"', b'ref="A1:XFD1048576"')
    answer = await ThreadRunner().ask(ReadText(name="a", sheet="Costs"), papers.zipped(members))
    assert isinstance(answer, TextAnswer)
    assert answer.content.startswith("[Costs]\nItem | Price | When\nTea | 2.5")


async def test_a_page_tree_without_an_end_is_a_clear_sentence() -> None:
    loop = papers.pdf_of([b"BT ET"]).replace(b"/Kids [4 0 R] /Count 1", b"/Kids [2 0 R] /Count 9")
    assert b"/Kids [2 0 R]" in loop
    with pytest.raises(AnnabelleError):
        await WorkerRunner().ask(ReadText(name="a.pdf"), loop)


async def test_a_document_that_takes_too_long_is_ended() -> None:
    with pytest.raises(ToolTimeout, match="too long"):
        await WorkerRunner(seconds=1.5).ask(ReadText(name="a.pdf"), papers.endless_pdf())


async def test_a_cancelled_reading_leaves_no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: asyncio.Queue[asyncio.subprocess.Process] = asyncio.Queue()
    begin = asyncio.create_subprocess_exec

    async def noted(*arguments: str, **settings: object) -> asyncio.subprocess.Process:
        process = await begin(*arguments, **settings)  # pyright: ignore
        begun.put_nowait(process)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", noted)
    reading = asyncio.create_task(WorkerRunner().ask(ReadText(name="a.pdf"), papers.endless_pdf()))
    process = await asyncio.wait_for(begun.get(), seconds(20))
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert process.returncode == -signal.SIGKILL


async def test_an_archive_that_unpacks_to_very_much_is_bounded() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        info = tarfile.TarInfo("zeros")
        info.size = 100_000_000
        archive.addfile(info, papers.io.BytesIO(bytes(100_000_000)))
    found = await WorkerRunner().ask(ListMembers(name="a.tgz"), out.getvalue())
    assert isinstance(found, MembersAnswer)
    assert found.size == 100_000_000


async def test_what_the_process_refuses_comes_back_as_the_same_sentence() -> None:
    lane = WorkerRunner()
    with pytest.raises(InvalidArguments, match="protected by a password") as caught:
        await lane.ask(ReadText(name="a.pdf"), papers.pdf("x", password="y"))
    assert (caught.value.field, caught.value.hint) == ("path", "Ask for a copy without one.")
    answer = await lane.ask(ReadText(name="a.pdf"), papers.pdf("after that"))
    assert isinstance(answer, TextAnswer)
    assert "after that" in answer.content


async def test_files_with_wrong_bytes_in_them_never_break_the_reader() -> None:
    """Every kind, with some bytes changed: an answer or a clear sentence, nothing else."""
    dice = random.Random(5)
    whole = {
        "a.pdf": papers.pdf("Hello"), "a.docx": papers.word(), "a.pptx": papers.slides(), "a.eml": papers.mail(),
        "a.html": b"<table><tr><td>x</table><p>y", "a.rtf": rb"{\rtf1 x\u99999 {{{\par}", "a.csv": b'a,"b\n1,2',
    }  # fmt: skip
    for name, data in whole.items():
        for _ in range(6):
            torn = bytearray(data[: dice.randrange(1, len(data) + 1)])
            for _ in range(dice.randrange(1, 20)):
                torn[dice.randrange(len(torn))] = dice.randrange(256)
            for question in (ReadText(name=name), TellFacts(name=name), ReadTables(name=name)):
                try:
                    await ThreadRunner().ask(question, bytes(torn))
                except AnnabelleError as error:
                    assert error.message.endswith(".")  # noqa: PT017  either is right
