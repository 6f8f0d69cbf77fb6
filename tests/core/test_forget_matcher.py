"""A text is found in every spelling in which a file or a row may hold it."""

from __future__ import annotations

import base64
import json
import random
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from annabelle.core.secrets.forget_mask import ForgetMatcher, fold_spelling, fold_unescaped

SECRET = "Zürich Vault 4711"


@pytest.mark.req("TRU-09")
@pytest.mark.parametrize(
    "held",
    [
        f"she said {SECRET}!",
        SECRET.upper(),
        SECRET.lower(),
        "Zu\u0308rich Vault 4711",
        "ＺÜＲＩＣＨ vault ４７１１",
        "zürich\n   vault\t4711",
        "Zü\u200brich\u00a0Vault 4711",
        json.dumps({"text": SECRET}),
        json.dumps(json.dumps({"text": SECRET})),
        ascii(SECRET),
        repr(SECRET.encode()),
        quote(SECRET),
        json.dumps({"text": "Zürich\nVault\t4711"}),
        base64.b64encode(SECRET.encode()).decode(),
        base64.b64encode(f"x{SECRET}x".encode()).decode(),
        base64.urlsafe_b64encode(f"xy{SECRET}".encode()).decode(),
    ],
)
def test_it_is_found_however_it_is_spelt(held: str):
    assert ForgetMatcher([SECRET]).found_in(held)


def test_it_is_found_in_the_bytes_of_any_file():
    matcher = ForgetMatcher([SECRET])
    assert matcher.found_in_bytes(b"\x00\xff" + SECRET.encode("utf-16-le") + b"\x00")
    assert matcher.found_in_bytes(b"\x80" + SECRET.upper().encode("utf-16-be"))
    assert matcher.found_in_bytes(b"\xff\xfe rows " + SECRET.encode())
    assert not matcher.found_in_bytes(SECRET[:-1].encode())


def test_what_is_not_it_is_not_found():
    matcher = ForgetMatcher([SECRET])
    for other in (
        "",
        "Zürich",
        "Zürich Vault 471",
        "Zürich-Vault-4711",
        "zurich vault 4711",
        base64.b64encode(b"Z").decode(),
    ):
        assert not matcher.found_in(other)


def test_one_of_several_texts_is_enough_and_nothing_finds_nothing():
    assert ForgetMatcher(["nowhere", "abc def"]).found_in("ABC   DEF")
    assert not ForgetMatcher([]).found_in("anything")
    assert not ForgetMatcher(["  "]).found_in("any thing")


def test_text_with_backslashes_is_found_as_it_stands_and_escaped():
    matcher = ForgetMatcher(["C:\\temp\\new"])
    assert matcher.found_in("at C:\\temp\\new now")
    assert matcher.found_in(json.dumps("C:\\temp\\new"))


@given(st.text(min_size=3, max_size=30).filter(lambda text: len(fold_spelling(text)) >= 3), st.text(max_size=20))
def test_whatever_is_written_as_json_is_found_again(text: str, around: str):
    matcher = ForgetMatcher([text])
    assert matcher.found_in(f"{around} {text} {around}")
    encodable = text.encode(errors="replace").decode()
    assert ForgetMatcher([encodable]).found_in_bytes(f"{around} {encodable}".encode(errors="replace"))


@given(st.lists(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), min_size=3), max_size=5))
def test_folding_twice_is_folding_once(texts: list[str]):
    for text in texts:
        assert fold_spelling(fold_spelling(text)) == fold_spelling(text)


@pytest.mark.req("TRU-09")
def test_of_a_file_full_of_vectors_only_what_may_be_text_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = random.Random(7).randbytes(200_000)
    taken: list[int] = []

    def counted(text: str) -> tuple[str, ...]:
        taken.append(len(text))
        return fold_unescaped(text)

    monkeypatch.setattr("annabelle.core.secrets.forget_mask.fold_unescaped", counted)
    assert not ForgetMatcher(["Quorval Tessaract"]).found_in_bytes(vectors)
    assert sum(taken) < len(vectors) / 5
    for held in (
        "quorval\x1ftessaract",
        "Quorval%20Tessaract",
        "ＱＵＯＲＶＡＬ\tTessaract",
        "Quor\u200bval\\nTessaract",
    ):
        assert ForgetMatcher(["Quorval Tessaract"]).found_in_bytes(
            vectors + b"\0" + held.encode() + b"\xff" + vectors
        ), held
    assert ForgetMatcher([fold_spelling("\ufdfa")]).found_in_bytes(vectors + b"\0" + "\ufdfa".encode() + b"\xff"), (
        "one sign, many letters"
    )
    assert ForgetMatcher(["tab\x01le one"]).found_in_bytes(vectors + b"\xffTab\x01le  One\0"), (
        "what no text has, asked for"
    )
