"""Bytes into text, without a process in between."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from annabelle.servers.kit.charset import decode_text
from annabelle.servers.searcher import pdf_text
from annabelle.servers.searcher.document_reader import read_document
from annabelle.servers.searcher.fetch import kind_of
from servers.searcher.documents import ARTICLE, pdf

pytestmark = pytest.mark.req("SRV-SRC")

CHARSETS = ["utf-8", "latin-1", "utf-16", "shift_jis", "hex", "zip", "rot13", "idna", "punycode", "utf-7", "", "a" * 40]


@settings(deadline=None, max_examples=60)
@given(data=st.binary(max_size=300), charset=st.sampled_from(CHARSETS) | st.none(), declared=st.booleans())
def test_any_bytes_become_text(data: bytes, charset: str | None, declared: bool) -> None:
    assert isinstance(decode_text(data, charset, declared=declared), str)


def test_a_text_cut_in_a_character_stays_in_its_encoding() -> None:
    assert decode_text("grüße aus köln".encode(), None) == "grüße aus köln"
    assert decode_text("süß".encode()[:2], None) == "s"


@settings(deadline=None, max_examples=60)
@given(data=st.binary(max_size=400))
def test_any_bytes_are_read_as_html_or_refused(data: bytes) -> None:
    answer = read_document({"kind": "html", "url": "https://x.example/", "charset": None, "links": True}, data)
    assert answer.keys() in ({"error"}, {"title", "description", "content", "note"})


@pytest.mark.parametrize("element", ["article", "main", "section", "p"])
@pytest.mark.parametrize("before", ["", "<title>Iron</title>", "<meta charset=utf-8><style>a {}</style>"])
def test_a_page_that_begins_without_a_body_is_read(before: str, element: str) -> None:
    page = f"{before}<{element}>Iron rusts in the rain.</{element}>".encode()
    answer = read_document({"kind": "html", "url": "https://x.example/", "charset": None, "links": False}, page)
    assert answer["content"] == "Iron rusts in the rain."


@settings(deadline=None, max_examples=60)
@given(start=st.integers(0, 700), junk=st.binary(max_size=50))
def test_a_damaged_pdf_is_read_or_refused(start: int, junk: bytes) -> None:
    whole = pdf("some words")
    answer = read_document({"kind": "pdf"}, whole[:start] + junk + whole[start + len(junk) :])
    assert answer.keys() in ({"error"}, {"title", "description", "content", "note"})


def test_only_so_many_pages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pdf_text, "MAX_PAGES", 2)
    answer = read_document({"kind": "pdf"}, pdf("one", "two", "three"))
    assert "three" not in (answer["content"] or "")
    assert answer["note"] == "Only 2 of 3 pages were read."


def test_a_scanned_pdf_says_that_it_has_no_text() -> None:
    assert read_document({"kind": "pdf"}, pdf(""))["note"] == "It has no text, only pictures of it."


@pytest.mark.parametrize(
    ("content_type", "data", "kind"),
    [
        ("text/html", b"", "html"),
        ("application/xhtml+xml", b"", "html"),
        ("", ARTICLE.encode(), "html"),
        ("text/plain", ARTICLE.encode(), "text"),
        ("text/plain", b"%PDF-1.7", "pdf"),
        ("application/octet-stream", b"\x00\x01", "other"),
        ("application/octet-stream", "word".encode("utf-16"), "text"),
        ("application/atom+xml", b"<feed/>", "text"),
        ("image/svg+xml", b"<svg/>", "text"),
        ("video/mp4", b"words", "other"),
    ],
)
def test_the_kind_is_told_by_name_and_by_the_first_bytes(content_type: str, data: bytes, kind: str) -> None:
    assert kind_of(content_type, data) == kind
