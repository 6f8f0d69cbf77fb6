"""A text is found in every spelling in which a file or a row may hold it."""

from __future__ import annotations

import base64
import json
import random
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annabelle.core.needle import Needle, fold, folds

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
    assert Needle([SECRET]).within(held)


def test_it_is_found_in_the_bytes_of_any_file():
    needle = Needle([SECRET])
    assert needle.within_bytes(b"\x00\xff" + SECRET.encode("utf-16-le") + b"\x00")
    assert needle.within_bytes(b"\x80" + SECRET.upper().encode("utf-16-be"))
    assert needle.within_bytes(b"\xff\xfe rows " + SECRET.encode())
    assert not needle.within_bytes(SECRET[:-1].encode())


def test_what_is_not_it_is_not_found():
    needle = Needle([SECRET])
    for other in (
        "",
        "Zürich",
        "Zürich Vault 471",
        "Zürich-Vault-4711",
        "zurich vault 4711",
        base64.b64encode(b"Z").decode(),
    ):
        assert not needle.within(other)


def test_one_of_several_texts_is_enough_and_nothing_finds_nothing():
    assert Needle(["nowhere", "abc def"]).within("ABC   DEF")
    assert not Needle([]).within("anything")
    assert not Needle(["  "]).within("any thing")


def test_text_with_backslashes_is_found_as_it_stands_and_escaped():
    needle = Needle(["C:\\temp\\new"])
    assert needle.within("at C:\\temp\\new now")
    assert needle.within(json.dumps("C:\\temp\\new"))


@given(st.text(min_size=3, max_size=30).filter(lambda text: len(fold(text)) >= 3), st.text(max_size=20))
def test_whatever_is_written_as_json_is_found_again(text: str, around: str):
    needle = Needle([text])
    assert needle.within(f"{around} {text} {around}")
    encodable = text.encode(errors="replace").decode()
    assert Needle([encodable]).within_bytes(f"{around} {encodable}".encode(errors="replace"))


@given(st.lists(st.text(alphabet=st.characters(blacklist_categories=["Cs"]), min_size=3), max_size=5))
def test_folding_twice_is_folding_once(texts: list[str]):
    for text in texts:
        assert fold(fold(text)) == fold(text)


@pytest.mark.req("TRU-09")
def test_of_a_file_full_of_vectors_only_what_may_be_text_is_taken_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = random.Random(7).randbytes(200_000)
    taken: list[int] = []

    def counted(text: str) -> tuple[str, ...]:
        taken.append(len(text))
        return folds(text)

    monkeypatch.setattr("annabelle.core.needle.folds", counted)
    assert not Needle(["Quorval Tessaract"]).within_bytes(vectors)
    assert sum(taken) < len(vectors) / 5
    for held in (
        "quorval\x1ftessaract",
        "Quorval%20Tessaract",
        "ＱＵＯＲＶＡＬ\tTessaract",
        "Quor\u200bval\\nTessaract",
    ):
        assert Needle(["Quorval Tessaract"]).within_bytes(vectors + b"\0" + held.encode() + b"\xff" + vectors), held
    assert Needle([fold("\ufdfa")]).within_bytes(vectors + b"\0" + "\ufdfa".encode() + b"\xff"), (
        "one sign, many letters"
    )
    assert Needle(["tab\x01le one"]).within_bytes(vectors + b"\xffTab\x01le  One\0"), "what no text has, asked for"
