"""Documents of every kind, read."""

from __future__ import annotations

from pathlib import Path

import pytest

from annabelle.core.errors import InvalidArguments, NotAllowed, NotFound, TooLarge
from annabelle.servers.documents import document_access
from servers.documents import papers
from servers.documents.conftest import Put
from servers.speaking import CallTool

pytestmark = pytest.mark.req("SRV-ALL")

ODT = (
    '<office:text><text:h text:outline-level="2">Head</text:h><text:p>One <text:s text:c="2"/>two</text:p>'
    "</office:text>"
)
ODP = "<office:presentation><draw:page><text:p>Slide one</text:p></draw:page></office:presentation>"
RTF = rb"{\rtf1\ansi{\fonttbl{\f0 Arial;}}{\*\generator X;}Gr\'fc\'dfe \u8364?uro\par Second {\b bold} line\par}"
HTML = (
    b"<html><head><title>T</title><style>x</style></head><body><h1>Head</h1><p>One&amp;two</p><script>bad()</script>"
    b"<ul><li>item</li></ul></body></html>"
)


@pytest.mark.parametrize(
    ("name", "data", "kind", "text"),
    [
        ("a.pdf", papers.pdf("Hello", "World"), "pdf", "[page 1]\nHello\n\n[page 2]\nWorld"),
        ("a.docx", papers.word(), "docx", "# The plan\nFirst we think.\nName | Age\nAnn | 30\n- Then we act."),
        ("a.xlsx", papers.excel(), "xlsx", "[Costs]\nItem | Price | When\nTea | 2.5 | 2026-03-01\nCake | 4"),
        ("a.pptx", papers.slides(), "pptx", "[slide 2]\nMiddle\n\nNotes: Speak slowly\n\n[slide 3]\nThe end"),
        ("a.odt", papers.open_document("text", ODT), "odt", "## Head\nOne   two"),
        ("a.odp", papers.open_document("presentation", ODP), "odp", "[slide 1]\nSlide one"),
        ("a.eml", papers.mail(), "eml", "Subject: Grüße & more\nAttachment: bill.pdf\n\nHello,\nsee attached."),
        ("a.rtf", RTF, "rtf", "Grüße €uro\nSecond bold line"),
        ("a.html", HTML, "html", "# Head\n\nOne&two\n\n- item"),
        ("page", HTML, "html", "# Head"),
        ("a.csv", "name;age\nZoë;3\n".encode(), "csv", "name;age\nZoë;3"),
        ("a.md", b"# Title\r\n\r\ntext", "markdown", "# Title\n\ntext"),
        ("a.txt", "grün".encode("latin-1"), "text", "grün"),
        ("a.log", "\ufeffgrün".encode("utf-16"), "text", "grün"),
        ("wrong.txt", papers.pdf("By its content"), "pdf", "By its content"),
    ],
)
async def test_every_kind_of_document_is_read(
    ask: CallTool, put: Put, name: str, data: bytes, kind: str, text: str
) -> None:
    result = await ask("read_document", path=put(f"Documents/{name}", data))
    assert result.kind == kind
    assert text in result.content
    assert "bad()" not in result.content


async def test_pages_are_read_in_the_order_asked_for(ask: CallTool, put: Put) -> None:
    path = put("a.pdf", papers.pdf(*(f"Text{number}" for number in range(1, 9))))
    result = await ask("read_document", path=path, pages="7,1-2")
    assert result.parts == [7, 1, 2]
    assert [word for word in result.content.split() if word.startswith("Text")] == ["Text7", "Text1", "Text2"]
    with pytest.raises(NotFound, match="no such page"):
        await ask("read_document", path=path, pages="20")
    for wrong in ("0", "3-1", "a", "1-", "1-99999", "1;2"):
        with pytest.raises(InvalidArguments):
            await ask("read_document", path=path, pages=wrong)
    with pytest.raises(InvalidArguments, match="has no pages"):
        await ask("read_document", path=put("a.txt", b"x"), pages="1")


async def test_a_sheet_is_read_by_name(ask: CallTool, put: Put) -> None:
    path = put("a.xlsx", papers.excel())
    assert (await ask("read_document", path=path, sheet="numbers")).content.startswith("[Numbers]\n1 | 1\n2 | 4")
    with pytest.raises(NotFound, match="no such sheet"):
        await ask("read_document", path=path, sheet="None")


async def test_a_long_document_is_read_piece_by_piece(ask: CallTool, put: Put) -> None:
    whole = "".join(f"line {number}\n" for number in range(500))
    path = put("long.txt", whole.encode())
    pieces: list[str] = []
    offset: int | None = 0
    while offset is not None:
        result = await ask("read_document", path=path, offset=offset, max_chars=1000)
        pieces.append(result.content)
        offset = result.next_offset
    assert "".join(pieces) == whole
    beyond = await ask("read_document", path=path, offset=1_000_000)
    assert (beyond.content, beyond.notice) == ("", "There is nothing after this offset.")


async def test_a_scan_says_that_it_has_no_text(ask: CallTool, put: Put) -> None:
    path = put("scan.pdf", papers.pdf("", ""))
    assert "a scan" in (await ask("read_document", path=path)).notice
    assert "a scan" in (await ask("get_document_info", path=path)).note


@pytest.mark.parametrize(
    ("name", "data", "facts"),
    [
        ("a.pdf", papers.pdf("Two words", "More"), {"title": "Offer", "author": "Ann", "pages": 2, "words": 3}),
        ("a.docx", papers.word(), {"title": "Plan", "author": "Ben", "pages": None}),
        ("a.xlsx", papers.excel(), {"sheets": ["Costs", "Numbers"], "kind": "xlsx"}),
        ("a.pptx", papers.slides(), {"title": "Talk", "slides": 3}),
        ("a.odt", papers.open_document("text", ODT), {"title": "Open", "words": 4}),
        ("a.eml", papers.mail(), {"title": "Grüße & more", "attachments": ["bill.pdf"]}),
        ("a.html", HTML, {"title": "T", "kind": "html"}),
        ("a.md", b"# My title\n\ntwo words", {"title": "My title", "words": 5}),
    ],
)
async def test_the_facts_of_a_document_are_told(
    ask: CallTool, put: Put, name: str, data: bytes, facts: dict[str, object]
) -> None:
    result = (await ask("get_document_info", path=put(name, data))).model_dump()
    assert {key: result[key] for key in facts} == facts
    assert result["size"] == len(data)


async def test_words_are_found_with_their_page_and_line(ask: CallTool, put: Put) -> None:
    path = put("a.pdf", papers.pdf("Nothing", "The WORD is here", "A word again"))
    result = await ask("search_document", path=path, query="word")
    assert [(hit.where, hit.line) for hit in result.hits] == [("page 2", 1), ("page 3", 1)]
    assert "page 2, line 1: The WORD is here" in result.to_text()
    few = await ask("search_document", path=path, query="word", limit=1)
    assert (len(few.hits), few.more) == (1, True)
    assert (await ask("search_document", path=path, query="absent")).to_text() == "Nothing was found."


async def test_an_encrypted_pdf_says_so_and_an_open_lock_is_no_lock(ask: CallTool, put: Put) -> None:
    with pytest.raises(InvalidArguments, match="protected by a password"):
        await ask("read_document", path=put("locked.pdf", papers.pdf("Secret", password="hush")))
    assert "Open" in (await ask("read_document", path=put("open.pdf", papers.pdf("Open", password="")))).content


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(100), "old Office file"),
        ("a.bin", bytes(range(256)), "not a document"),
        ("a.zip", papers.zipped({"x": "y"}), "is an archive"),
        ("a.jpg", papers.photo(), "is a picture"),
        ("a.pdf", b"%PDF-1.7 and nothing more", "broken"),
        ("a.docx", papers.zipped({"word/document.xml": "<broken"}), "broken"),
        ("a.xlsx", papers.zipped({"xl/workbook.xml": "<broken"}), "broken"),
        ("a.pptx", papers.zipped({"ppt/presentation.xml": "", "ppt/slides/slide1.xml": "<broken"}), "broken"),
        ("a.odt", papers.zipped({"mimetype": "application/vnd.oasis.opendocument.text"}), "no content"),
        ("cut.docx", papers.word()[:2000], "archive"),
    ],
)
async def test_what_can_not_be_read_is_one_clear_sentence(
    ask: CallTool, put: Put, name: str, data: bytes, said: str
) -> None:
    with pytest.raises(InvalidArguments, match=said):
        await ask("read_document", path=put(name, data))


async def test_an_empty_file_is_empty(ask: CallTool, put: Put) -> None:
    result = await ask("read_document", path=put("empty.txt", b""))
    assert (result.content, result.notice) == ("", "It is empty.")


async def test_paths_outside_and_files_too_large_are_refused(
    ask: CallTool, put: Put, workspace: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("a.txt", b"x" * 2000)
    (workspace / "link.txt").symlink_to(outside / "secret.txt")
    for path in (str(outside / "secret.txt"), "link.txt", "/etc/passwd"):
        with pytest.raises(NotAllowed):
            await ask("read_document", path=path)
    with pytest.raises(NotFound):
        await ask("read_document", path="none.pdf")
    monkeypatch.setattr(document_access, "MAX_BYTES", 1000)
    with pytest.raises(TooLarge):
        await ask("read_document", path="a.txt")
